# Runs the tests named in ARGS ("routing layer"), all of them without one. Environment: GGM_LIBRARY, the library to test; CC, a C
# compiler for the comparison with the header.
using Test
using GGM

include("support.jl")

const ALL = ["declarations", "handle", "arrays", "routing", "products", "layer", "strides", "golden", "package"]

@testset "$name" for name in (isempty(ARGS) ? ALL : ARGS)
    include("test_$name.jl")
end
