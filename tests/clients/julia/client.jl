# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
#
# The Julia client; ../README.md says what each mode does and what the state is.
include("ckpt.jl")

const RANK = parse(Int, get(ENV, "RANK", "0"))
const SIZE = parse(Int, get(ENV, "WORLD_SIZE", "1"))

"""Positions (from 0) of this rank's part of n items, as evenly as they go."""
share(n) = div(n * RANK, SIZE):div(n * (RANK + 1), SIZE) - 1

bfloat16(x) = BFloat16(reinterpret(UInt32, Float32(x)) >> 16)  # exact for these values

"""What this rank holds of the state by `base`."""
tensors(base) = (
    w=Float32[base + (5row + column) / 2 for column in 0:4, row in share(7)],
    bias=Float32[base + 100 + i for i in 0:4],
    loss=fill(base / 8),
    count=Int64[base * 10^12 - i for i in share(6)],
    half=BFloat16[bfloat16((base + i - 4) / 2) for i in share(8)],
    bytes=UInt8[(37i + base) % 256 for i in share(9)])

function describe!(state, t)
    add!(state, "model", "w", t.w, global_size=(5, 7), offset=(0, first(share(7))))
    add!(state, "model", "bias", t.bias)
    add!(state, "model", "loss", t.loss)
    add!(state, "optimizer", "count", t.count, global_size=(6,), flat_offset=first(share(6)))
    add!(state, "optimizer", "half", t.half, global_size=(8,), flat_offset=first(share(8)))
    add!(state, "optimizer", "bytes", t.bytes, global_size=(9,), offset=(first(share(9)),))
end

const BLOBS = (("état", CKPT_BLOB_PER_RANK), ("sampler", CKPT_BLOB_SHARED),
               ("config.json", CKPT_BLOB_FILE))

blobs(base) = (Vector{UInt8}("base $base rank $RANK"), UInt8[base, base + 1, base + 2],
               Vector{UInt8}("{\"base\": $base}\n"))

save(ctx, base::Int, step::Int, tag) = with_state(ctx) do state
    describe!(state, tensors(base))
    for ((name, scope), content) in zip(BLOBS, blobs(base))
        add_blob!(state, scope, name, content)
    end
    save(ctx, state, step, tag=tag, metadata="k=v").step
end

"""Into memory that holds something else; `saved_by` ranks wrote it."""
load(ctx, base, saved_by) = with_state(ctx) do state
    held, buffers = tensors(base + 1), [zeros(UInt8, 64) for _ in BLOBS]
    describe!(state, held)
    sizes = [add_blob!(state, scope, name, buffer, flags=CKPT_BLOB_OPTIONAL)
             for ((name, scope), buffer) in zip(BLOBS, buffers)]
    result = load!(ctx, state)
    @assert held == tensors(base) held
    absent = [size[] == typemax(UInt64) for size in sizes]
    @assert absent == [RANK >= saved_by, false, false] absent
    for (content, buffer, size) in zip(blobs(base), buffers, sizes)
        @assert size[] == typemax(UInt64) || buffer[1:size[]] == content
    end
    result.step
end

function expect_mismatch(save)
    try
        save()
    catch e
        e isa CkptError || rethrow()
        @assert (e.code, e.cause_field) == (CKPT_ERR_MISMATCH, "tag") e
        # With one rank on each side the later is the one that is named.
        @assert e.ranks == [(e.cause_rank, CKPT_RANK_DISAGREES)] e
        @assert occursin("\"other\" on rank 1", e.message) e
        return
    end
    error("ranks with different tags saved")
end

function train(root, base)
    milestones = []
    on_event(event) = begin
        event.kind == CKPT_EVENT_MILESTONE && push!(milestones, (event.step, event.milestone))
        false
    end
    with_context(root, on_event=on_event) do ctx
        @assert save(ctx, base, 1, "client") == 1
        @assert last(milestones) == (1, CKPT_AT_COMMITTED)
        expect_mismatch(() -> save(ctx, base + 1, 2, RANK == 1 ? "other" : "client"))
        @assert latest(ctx) == 1
        @assert load(ctx, base, SIZE) == 1
        @assert save(ctx, base + 1, 2, "client") == 2
        @assert load(ctx, base + 1, SIZE) == 2
    end
end

function main(mode, root="", base="0", saved_by="0")
    base, saved_by = parse(Int, base), parse(Int, saved_by)
    if mode == "--layout"
        layout()
    elseif mode == "train"
        train(root, base)
    elseif mode == "save"
        with_context(ctx -> save(ctx, base, base, "client"), root)
    elseif mode == "load"
        with_context(ctx -> (@assert load(ctx, base, saved_by) == base), root)
    else
        error("usage: client.jl --layout | train|save ROOT BASE | load ROOT BASE SAVED_BY")
    end
end

main(ARGS...)
