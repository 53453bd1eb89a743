# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
#
# A small binding: contexts, states, errors with their cause and ranks. Julia's arrays are
# column-major and the library's tensors row-major, so a tensor of shape (7, 5) is an array of size
# (5, 7): the same memory, its dimensions named from the other end.
import Libdl

include("abi.jl")

const LIBRARY = Ref(C_NULL)
function library_function(name)
    if LIBRARY[] == C_NULL
        LIBRARY[] = Libdl.dlopen(get(ENV, "CKPT_LIB", "libckpt.so.1"))
    end
    Libdl.dlsym(LIBRARY[], name)
end

struct CkptError <: Exception
    code::Int
    message::String
    cause_rank::Int
    cause_field::Union{String,Nothing}
    ranks::Vector{Tuple{Int,Int}}  # rank, condition
end
Base.showerror(io::IO, e::CkptError) = print(io, "CkptError ", e.code, ": ", e.message)

text(p::Text) = p == C_NULL ? nothing : unsafe_string(p)

"""The address of a string that the caller keeps; a NUL inside is an error."""
address(s::String) = Text(Base.unsafe_convert(Cstring, s))

"""Runs a call that may make an error, and throws what that says."""
function check(call)
    error = Ref(C_NULL)
    status = call(error)
    status >= CKPT_OK || throw(taken(status, error[]))
    nothing
end

function taken(status, error)
    cause = Ref(ckpt_error_cause())
    ccall(library_function(:ckpt_error_get_cause), Int32, (Ptr{Cvoid}, Ref{ckpt_error_cause}),
          error, cause)
    count = ccall(library_function(:ckpt_error_rank_count), UInt64, (Ptr{Cvoid},), error)
    ranks = map(1:Int(count)) do i
        report = Ref(ckpt_rank_report())
        ccall(library_function(:ckpt_error_rank), Int32,
              (Ptr{Cvoid}, UInt64, Ref{ckpt_rank_report}), error, i - 1, report)
        (Int(report[].rank), Int(report[].condition))
    end
    message = ccall(library_function(:ckpt_error_message), Text, (Ptr{Cvoid},), error)
    e = CkptError(status, text(message), cause[].rank, text(cause[].field), ranks)
    ccall(library_function(:ckpt_error_free), Cvoid, (Ptr{Cvoid},), error)
    e
end

"""Calls `on_event(event)`. An exception must not jump over the library's frames: it cancels."""
function deliver(user::Ptr{Cvoid}, event::Ptr{ckpt_event})::Int32
    try
        on_event = unsafe_pointer_to_objref(user)[]
        on_event(unsafe_load(event)) === true
    catch
        true
    end
end

"""This rank's part in a job, and a root. `on_event` may return true to cancel."""
mutable struct Context
    handle::Ptr{Cvoid}
    on_event::Ref{Any}  # where the library finds it until close()

    function Context(root::String; on_event=event -> false)
        raw, holder = Ref(C_NULL), Ref{Any}(on_event)
        GC.@preserve root holder begin
            options = ckpt_init_options(
                root=address(root), event_user=pointer_from_objref(holder),
                on_event=@cfunction(deliver, Int32, (Ptr{Cvoid}, Ptr{ckpt_event})))
            check(e -> ccall(library_function(:ckpt_init), Int32,
                             (UInt32, Ref{ckpt_init_options}, Ref{Ptr{Cvoid}}, Ref{Ptr{Cvoid}}),
                             CKPT_HEADER_ABI, options, raw, e))
        end
        new(raw[], holder)
    end
end

"""Ends together with the other ranks."""
finalize_all(ctx::Context) =
    check(e -> ccall(library_function(:ckpt_finalize), Int32,
                     (Ptr{Cvoid}, UInt64, Ref{Ptr{Cvoid}}), ctx.handle, 0, e))

function Base.close(ctx::Context)
    ccall(library_function(:ckpt_ctx_free), Cvoid, (Ptr{Cvoid},), ctx.handle)
    ctx.handle = C_NULL
end

"""Runs `body(ctx)`; ends with the others if it succeeds, alone if it throws."""
function with_context(body, root; options...)
    ctx = Context(root; options...)
    try
        body(ctx)
        finalize_all(ctx)
    finally
        close(ctx)
    end
end

"""What this rank holds. Keeps alive the arrays whose addresses the library has."""
mutable struct State
    handle::Ptr{Cvoid}
    kept::Vector{Any}
end

function with_state(body, ctx::Context)
    raw = Ref(C_NULL)
    check(e -> ccall(library_function(:ckpt_state_new), Int32,
                     (Ptr{Cvoid}, Ref{Ptr{Cvoid}}, Ref{Ptr{Cvoid}}), ctx.handle, raw, e))
    state = State(raw[], [])
    try
        GC.@preserve state body(state)
    finally
        ccall(library_function(:ckpt_state_free), Cvoid, (Ptr{Cvoid},), state.handle)
    end
end

struct BFloat16
    bits::UInt16
end

dtype(::Type{T}, code) where {T} = UInt32(code | 8 * sizeof(T) << 8 | 1 << 16)
dtype(::Type{T}) where {T<:Signed} = dtype(T, 0)
dtype(::Type{T}) where {T<:Unsigned} = dtype(T, 1)
dtype(::Type{T}) where {T<:AbstractFloat} = dtype(T, 2)
dtype(::Type{BFloat16}) = dtype(BFloat16, 4)

row_major(dims) = Int64[d for d in reverse(dims)]

"""Adds an array: all of a tensor; or the box of `global_size` after `offset`; or the elements of
`global_size` after `flat_offset`. Sizes and offsets are Julia's (column-major), from 0."""
function add!(state::State, group::String, name::String, array::Array{T};
              global_size=size(array), offset=nothing, flat_offset=nothing) where {T}
    shape, extent = row_major(global_size), row_major(size(array))
    start = offset === nothing ? Int64[] : row_major(offset)
    box, flat = offset !== nothing, flat_offset !== nothing
    push!(state.kept, array)
    GC.@preserve group name shape extent start begin
        tensor = Ref(ckpt_tensor(
            name=address(name), group=address(group), dtype=dtype(T), ndim=length(shape),
            global_shape=pointer(shape), data=pointer(array),
            shard_kind=box ? CKPT_SHARD_BOX : flat ? CKPT_SHARD_FLAT : CKPT_SHARD_WHOLE,
            offset=box ? pointer(start) : C_NULL, extent=box ? pointer(extent) : C_NULL,
            flat_offset=flat ? flat_offset : 0, flat_count=flat ? length(array) : 0))
        GC.@preserve tensor begin
            tensors = [Base.unsafe_convert(Ptr{ckpt_tensor}, tensor)]
            check(e -> ccall(library_function(:ckpt_state_add_tensors), Int32,
                             (Ptr{Cvoid}, Ptr{Ptr{ckpt_tensor}}, UInt64, Ptr{UInt64},
                              Ref{Ptr{Cvoid}}), state.handle, tensors, 1, C_NULL, e))
        end
    end
end

"""Adds a blob. After a load, `actual[]` is its size, typemax(UInt64) if there was none."""
function add_blob!(state::State, scope, name::String, content::Vector{UInt8}; flags=0)
    actual = Ref{UInt64}(0)
    push!(state.kept, content, actual)
    GC.@preserve name begin
        blob = ckpt_blob(
            flags=flags, scope=scope, writer_rank=-1, name=address(name), data=pointer(content),
            bytes=length(content), actual=Base.unsafe_convert(Ptr{UInt64}, actual))
        check(e -> ccall(library_function(:ckpt_state_add_blob), Int32,
                         (Ptr{Cvoid}, Ref{ckpt_blob}, Ptr{UInt64}, Ref{Ptr{Cvoid}}),
                         state.handle, blob, C_NULL, e))
    end
    actual
end

function save(ctx::Context, state::State, step; tag::String="", metadata::String="")
    result = Ref(ckpt_result())
    GC.@preserve tag metadata begin
        options = ckpt_save_options(step=step, tag=address(tag), metadata=address(metadata))
        check(e -> ccall(library_function(:ckpt_save_collective), Int32,
                         (Ptr{Cvoid}, Ptr{Cvoid}, Ref{ckpt_save_options}, Ref{ckpt_result},
                          Ptr{Cvoid}, Ref{Ptr{Cvoid}}),
                         ctx.handle, state.handle, options, result, C_NULL, e))
    end
    result[]
end

"""The newest step."""
function load!(ctx::Context, state::State)
    result = Ref(ckpt_result())
    options = ckpt_load_options(which=CKPT_LOAD_LATEST)
    check(e -> ccall(library_function(:ckpt_load), Int32,
                     (Ptr{Cvoid}, Ptr{Cvoid}, Ref{ckpt_load_options}, Ref{ckpt_result},
                      Ptr{Cvoid}, Ref{Ptr{Cvoid}}),
                     ctx.handle, state.handle, options, result, C_NULL, e))
    result[]
end

function latest(ctx::Context)
    step = Ref{Int64}(-1)
    check(e -> ccall(library_function(:ckpt_latest), Int32,
                     (Ptr{Cvoid}, Ref{Int64}, Ref{Ptr{Cvoid}}), ctx.handle, step, e))
    step[]
end
