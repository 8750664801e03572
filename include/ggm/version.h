/* libggm: the one source of the version. CMake, the packages and the bindings read these three lines. */
#ifndef GGM_VERSION_H
#define GGM_VERSION_H

#define GGM_VERSION_MAJOR 0
#define GGM_VERSION_MINOR 1
#define GGM_VERSION_PATCH 0

/* One comparable number: 10000 * major + 100 * minor + patch. */
#define GGM_VERSION (GGM_VERSION_MAJOR * 10000 + GGM_VERSION_MINOR * 100 + GGM_VERSION_PATCH)

#endif /* GGM_VERSION_H */
