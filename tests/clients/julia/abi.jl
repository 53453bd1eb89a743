# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
#
# ckpt.h as Julia sees it: every public struct, and the constants that the client uses. layout() is
# compared with the C compiler's (clients_test.cc).

const Text = Ptr{UInt8}  # Cstring is no Ptr, so that it has no NULL to begin with
const Dims = Ptr{Int64}
const STRUCTS = DataType[]

zeroed(::Type{T}) where {T<:Integer} = zero(T)
zeroed(::Type{Ptr{T}}) where {T} = Ptr{T}(C_NULL)

"""A struct that begins with its size and whose fields are zero unless a keyword gives them."""
macro abi(definition)
    name, body = definition.args[2], definition.args[3]
    fields = Any[:(struct_size::UInt32 = sizeof($name))]
    for field in body.args
        field isa Expr && push!(fields, :($field = zeroed($(field.args[2]))))
    end
    body.args = fields
    esc(quote
        Base.@kwdef $definition
        push!(STRUCTS, $name)
    end)
end

@abi struct ckpt_rank_report
    rank::Int32; condition::UInt32; reserved0::UInt32; heartbeat_age_ns::UInt64; phase_step::Int64
    host::Text; phase::Text; doing::Text; last_call::Text
end
@abi struct ckpt_error_cause
    rank::Int32; sys_errno::Int32; reserved0::UInt32; path::Text; name::Text; field::Text
end
@abi struct ckpt_event
    kind::UInt32; step::Int64; milestone::UInt32; reserved0::UInt32; bytes_done::UInt64
    bytes_total::UInt64; text::Text
end
@abi struct ckpt_comm
    kind::UInt32; flags::UInt32; port::UInt32; handle::Ptr{Cvoid}; handle_size::UInt64
    adapter::Text; rank::Int32; size::Int32; addr::Text; token::Text; stream::Ptr{Cvoid}
end
@abi struct ckpt_init_options
    flags::UInt32; comm::Ptr{ckpt_comm}; name::Text; root::Text; layout_note::Text; config::Text
    contract_timeout_ms::UInt64; heartbeat_ms::UInt64; log::Ptr{Cvoid}; log_user::Ptr{Cvoid}
    log_level::Int32; io_threads::Int32; on_event::Ptr{Cvoid}; event_user::Ptr{Cvoid}
    describe::Ptr{Cvoid}; describe_user::Ptr{Cvoid}
end
@abi struct ckpt_advice
    flags::UInt32; next_step::Int64; seconds_left::UInt64
end
@abi struct ckpt_tensor
    flags::UInt32; name::Text; group::Text; dtype::UInt32; store_dtype::UInt32; ndim::Int32
    shard_kind::UInt32; global_shape::Dims; offset::Dims; extent::Dims; flat_offset::Int64
    flat_count::Int64; strides::Dims; data::Ptr{Cvoid}; device_type::Int32; device_id::Int32
    stream::Ptr{Cvoid}
end
@abi struct ckpt_blob
    flags::UInt32; scope::UInt32; writer_rank::Int32; name::Text; data::Ptr{Cvoid}; bytes::UInt64
    actual::Ptr{UInt64}
end
@abi struct ckpt_result
    flags::UInt32; step::Int64; tensors::UInt64; bytes::UInt64; bytes_written::UInt64
    bytes_read::UInt64; bytes_exchanged::UInt64; missing::UInt64; unused::UInt64; plan_ns::UInt64
    snapshot_ns::UInt64; io_ns::UInt64; commit_ns::UInt64; total_ns::UInt64
end
@abi struct ckpt_save_options
    flags::UInt32; step::Int64; tag::Text; on_existing::UInt32; on_busy::UInt32
    contract_timeout_ms::UInt64; metadata::Text
end
@abi struct ckpt_load_options
    flags::UInt32; which::UInt32; reserved0::UInt32; step::Int64; uri::Text
    contract_timeout_ms::UInt64
end
@abi struct ckpt_request_info
    milestone::UInt32; bytes_done::UInt64; bytes_total::UInt64; job_bytes_done::UInt64
    job_bytes_total::UInt64; waiting_ns::UInt64; waiting_rank::Int32; reserved0::UInt32
    phase::Text; file::Text
end
@abi struct ckpt_checkpoint_info
    flags::UInt32; step::Int64; sequence::UInt64; tag::Text; lineage::Text; layout_note::Text
    path::Text; bytes::UInt64; tensors::UInt64; world_size::UInt64; created_unix_ns::Int64
end
@abi struct ckpt_tensor_info
    dtype::UInt32; name::Text; group::Text; alias_of::Text; file::Text; ndim::Int32
    reserved0::UInt32; global_shape::Dims; bytes::UInt64; file_offset::UInt64
end
@abi struct ckpt_file_info
    reserved0::UInt32; name::Text; bytes::UInt64; writers::UInt64
end
@abi struct ckpt_blob_info
    scope::UInt32; name::Text; rank::Int32; reserved0::UInt32; bytes::UInt64
end

const CKPT_HEADER_ABI = UInt32(1) << 16
const CKPT_OK = 0
const CKPT_ERR_MISMATCH = -11
const CKPT_RANK_DISAGREES = 4
const CKPT_EVENT_MILESTONE = 2
const CKPT_AT_COMMITTED = 4
const CKPT_SHARD_WHOLE = 0
const CKPT_SHARD_BOX = 1
const CKPT_SHARD_FLAT = 2
const CKPT_BLOB_PER_RANK = 0
const CKPT_BLOB_SHARED = 1
const CKPT_BLOB_FILE = 2
const CKPT_BLOB_OPTIONAL = 1
const CKPT_LOAD_LATEST = 0

"""Prints lines as the program of layout.py does."""
function layout()
    kind(::Type{<:Ptr}) = "p"
    kind(::Type{<:Signed}) = "i"
    kind(::Type{<:Unsigned}) = "u"
    for T in STRUCTS
        println(nameof(T), " ", sizeof(T))
        for (i, field) in enumerate(fieldnames(T))
            of = fieldtype(T, i)
            println(nameof(T), ".", field, " ", fieldoffset(T, i), " ", sizeof(of), " ", kind(of))
        end
    end
    for name in names(@__MODULE__; all=true)
        startswith(string(name), "CKPT_") && println(name, " ", Int(getfield(@__MODULE__, name)))
    end
end
