"""
    GGM.BFloat16

A bfloat16 number: the upper half of a Float32. Numbers round to the nearest, by way of Float32. It is here to store and convert, not to compute: arithmetic is for another package,
whose arrays go in as they are where [`data_type`](@ref) knows their element type (`Core.BFloat16` it does), or else by
`reinterpret(GGM.BFloat16, array)`.
"""
primitive type BFloat16 <: AbstractFloat 16 end

function BFloat16(x::Float32)
    bits = reinterpret(UInt32, x)
    isnan(x) && return reinterpret(BFloat16, (bits >> 16) % UInt16 | 0x0040)  # stays a NaN when its lower half is cut
    # To the nearest, ties to even: half of the last place, less one where the last kept bit is 0.
    return reinterpret(BFloat16, ((bits + 0x7fff + ((bits >> 16) & 0x1)) >> 16) % UInt16)
end
BFloat16(x::Real) = BFloat16(Float32(x))

Base.Float32(x::BFloat16) = reinterpret(Float32, UInt32(reinterpret(UInt16, x)) << 16)
Base.Float64(x::BFloat16) = Float64(Float32(x))
Base.Float16(x::BFloat16) = Float16(Float32(x))
Base.promote_rule(::Type{BFloat16}, ::Type{T}) where {T<:Union{Float32,Float64}} = T
Base.promote_rule(::Type{BFloat16}, ::Type{<:Union{Integer,Float16}}) = Float32
Base.signbit(x::BFloat16) = signbit(Float32(x))
Base.:(==)(a::BFloat16, b::BFloat16) = Float32(a) == Float32(b)
Base.hash(x::BFloat16, seed::UInt) = hash(Float32(x), seed)
Base.isnan(x::BFloat16) = isnan(Float32(x))
Base.show(io::IO, x::BFloat16) = print(io, "BFloat16(", Float32(x), ")")
