"""
    GGM.Routing(group_offsets, row_assignment, assignment_row)
    GGM.Routing(ids, experts; max_rows = length(ids))

The three Int32 arrays that [`route!`](@ref) fills and the other operations read; the second form makes them beside `ids`, unfilled.
Their values count from 0.

    group_offsets   (experts+1,)      rows of expert e are group_offsets[e+1] .. group_offsets[e+2]-1
    row_assignment  (max_rows,)       the assignment t*top_k + j of each row, -1 in unused rows; at most tokens*top_k long
    assignment_row  (top_k, tokens)   the row of each assignment, -1 where there is none
"""
struct Routing{O,R,A}
    group_offsets::O
    row_assignment::R
    assignment_row::A
end
function Routing(ids::AbstractMatrix, experts::Integer; max_rows::Integer=length(ids))
    return Routing(similar(ids, Int32, experts + 1), similar(ids, Int32, max_rows), similar(ids, Int32, size(ids)...))
end
