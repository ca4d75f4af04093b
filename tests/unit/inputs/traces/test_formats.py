"""Each producer's format, in a few lines as it writes them."""

import gzip
import json

import numpy as np
import polars as pl
import pytest

from gpuplan.domain.traffic.trace import ColumnMap, TraceQuery
from gpuplan.errors import InputError
from gpuplan.inputs.traces.read import read_trace, stream_trace


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="trace"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def jsonl(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def told(found, word):
    return any(word in sentence for sentence in found.remarks)


def test_azure_2023_has_seven_digits_and_no_zone(write):
    found = read_trace(
        write(
            "TIMESTAMP,ContextTokens,GeneratedTokens\n"
            "2023-11-16 18:15:46.6805900,374,44\n"
            "2023-11-16 18:15:50.9951690,396,109\n"
        )
    )
    assert found.format == "azure"
    assert found.requests.arrive_s.tolist() == [0.0, 4.314579]
    assert found.requests.input_tokens.tolist() == [374, 396]
    assert found.start_at.startswith("2023-11-16T18:15:46.68059")
    assert told(found, "no zone")


def test_azure_2024_bears_a_zone(write):
    found = read_trace(
        write(
            "TIMESTAMP,ContextTokens,GeneratedTokens\n"
            "2024-05-10 00:00:00.009930+00:00,2162,5\n"
            "2024-05-10 00:00:00.017335+00:00,2399,6\n"
        )
    )
    assert found.requests.arrive_s.tolist() == pytest.approx([0.0, 0.007405], abs=1e-12)
    assert told(found, "zone +00:00")


def test_zones_may_differ_from_line_to_line(write):
    found = read_trace(
        write(
            "time,input_tokens,output_tokens\n"
            "2024-05-10T08:00:00+08:00,1,1\n2024-05-10T00:00:05Z,1,1\n2024-05-10T00:00:09,1,1\n"
            "2024-05-09T20:30:10-0330,1,1\n"
        )
    )
    assert found.requests.arrive_s.tolist() == [0.0, 5.0, 9.0, 10.0]
    assert told(found, "some times bear no zone")


def test_azure_images_are_told(write):
    found = read_trace(
        write("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00,2,9,9\n")
    )
    assert found.format == "azure-lmm"
    assert told(found, "images")


def test_times_that_are_marks_leave_lengths_alone(write):
    found = read_trace(
        write("TIMESTAMP,ContextTokens,GeneratedTokens\nXXX,107,15\nXXX,396,513\nYYY,1,1\n")
    )
    assert not found.has_arrivals
    assert found.requests.input_tokens.tolist() == [107, 396]
    assert found.n_bad == 1
    assert told(found, "no times")


def test_burstgpt_without_and_with_sessions(write):
    old = read_trace(
        write(
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n"
        )
    )
    assert old.format == "burstgpt"
    assert old.requests.arrive_s.tolist() == [5.0, 45.0]
    assert old.requests.output_tokens.tolist() == [18, 0]
    assert told(old, "failed")
    assert told(old, "1 outputs have 0 tokens, and are retained")
    new = read_trace(
        write(
            "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"
            "Log Type\n19440110.0,a,43,GPT-4,906,446,1352,Conversation log\n"
            "19440161.0,b,2,ChatGPT,36,29,65,Conversation log\n"
            "19440171.0,a,2,ChatGPT,36,29,65,Conversation log\n"
        )
    )
    assert new.requests.session.tolist() == [0, 1, 0]
    assert new.requests.arrive_s.tolist() == [0.0, 51.0, 61.0]
    assert told(new, "time 0 is the first request, at 19440110")


def test_burstgpt_can_be_read_model_by_model(write):
    path = write(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,472,18,490,API log\n45,GPT-4,1087,7,1094,API log\n"
    )
    found = read_trace(path, TraceQuery(where=(("Model", "GPT-4"),)))
    assert found.requests.input_tokens.tolist() == [1087]
    assert told(found, "1 lines of other runs")


def test_mooncake_counts_in_milliseconds_and_blocks(write):
    found = read_trace(
        write(
            jsonl(
                {"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [7, 9, 4]},
                {
                    "timestamp": 3000,
                    "input_length": 1030,
                    "output_length": 6,
                    "hash_ids": [7, 9, 5],
                },
                {"timestamp": 3000, "input_length": 10, "output_length": 6, "hash_ids": [8]},
            )
        )
    )
    assert found.format == "mooncake"
    assert found.requests.arrive_s.tolist() == [0.0, 3.0, 3.0]
    assert found.blocks.n_block_tokens == 512
    assert found.blocks.block.tolist() == [0, 1, 2, 0, 1, 3, 4]
    assert found.blocks.first.tolist() == [0, 3, 6, 7]
    assert found.requests.prefix_group.tolist() == [0, 0, -1]
    assert found.requests.prefix_tokens.tolist() == [1024, 1024, 0]


def test_blocks_follow_their_requests_when_rows_are_sorted(write):
    found = read_trace(
        write(
            jsonl(
                {"timestamp": 9, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]},
                {"timestamp": 3, "input_length": 10, "output_length": 2, "hash_ids": [3]},
                {"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [1, 4]},
            )
        )
    )
    assert found.requests.output_tokens.tolist() == [2, 3, 1]
    assert found.blocks.first.tolist() == [0, 1, 3, 5]
    assert found.blocks.block.tolist() == [0, 1, 2, 1, 3]
    assert found.line.tolist() == [2, 3, 1]
    assert told(found, "out of order: 1")


def test_bailian_follows_chats_to_their_root(write):
    common = {"output_length": 5, "type": "text"}
    found = read_trace(
        write(
            jsonl(
                {"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 20,
                 "turn": 1, "hash_ids": [1, 2], **common},
                {"chat_id": 2, "parent_chat_id": 1, "timestamp": 70.5, "input_length": 33,
                 "turn": 2, "hash_ids": [1, 2, 3], **common},
                {"chat_id": 3, "parent_chat_id": -1, "timestamp": 80, "input_length": 40,
                 "turn": 1, "hash_ids": [1], **common},
            )
        )
    )  # fmt: skip
    assert found.format == "bailian"
    assert found.requests.session.tolist() == [0, 0, 1]
    assert found.blocks.n_block_tokens == 16
    assert told(found, "1 prompts with more or fewer block hashes")


def test_ragpulse_writes_seconds_as_text(write):
    hashes = {"sys_prompt": [1], "passages_ids": [2], "history": [], "user_input": [3]}
    record = {"input_length": 5, "output_length": 6, "hash_ids": hashes, "session_id": "x"}
    found = read_trace(write(jsonl({"timestamp": "82", **record}, {"timestamp": "93", **record})))
    assert found.format == "ragpulse"
    assert found.requests.arrive_s.tolist() == [82.0, 93.0]
    assert found.requests.session.tolist() == [0, 0]


def test_vidur_counts_in_seconds(write):
    found = read_trace(write("arrived_at,num_prefill_tokens,num_decode_tokens\n0.158,395,112\n"))
    assert found.format == "vidur"
    assert found.requests.arrive_s.tolist() == [0.158]


def aiperf(start_ns, *, phase="profiling", **more):
    metrics = {"input_sequence_length": {"value": 9, "unit": "tokens"},
               "output_sequence_length": {"value": 4, "unit": "tokens"}}  # fmt: skip
    metadata = {"request_start_ns": start_ns, "benchmark_phase": phase, "x_correlation_id": "c"}
    return {"metadata": metadata, "metrics": metrics, **more}


def test_aiperf_leaves_warm_up_and_failures_out_and_says_so(write):
    start = 1_783_588_508_057_339_762
    found = read_trace(
        write(
            jsonl(
                aiperf(start, phase="warmup"),
                aiperf(start + 10**9),
                aiperf(start + 3 * 10**9),
                aiperf(start, error={"code": 500}),
            )
        )
    )
    assert found.format == "aiperf"
    assert found.requests.arrive_s.tolist() == pytest.approx([0.0, 2.0], abs=1e-6)
    assert told(found, "1 warm-up")
    assert told(found, "1 requests that failed")
    assert told(found, "how fast that server responded")


def test_dynamo_events_that_are_no_requests_are_told(write):
    def event(kind, **request):
        return {"timestamp": 1, "event": {"schema": "dynamo.request.trace.v1", "event_type": kind,
                "agent_context": {"session_id": "s"}, "request": request}}  # fmt: skip

    replay = {"trace_block_size": 16, "input_sequence_hashes": [2**63 + 1, 5]}
    found = read_trace(
        write(
            jsonl(
                event("tool_start"),
                event("request_end", request_received_ms=1_779_163_048_815, input_tokens=20,
                      output_tokens=3, replay=replay),
            )
        )
    )  # fmt: skip
    assert found.format == "dynamo"
    assert found.blocks.block.tolist() == [0, 1]
    assert told(found, "1 events of tools")
    assert found.start_at.startswith("2026-05-19")


def test_guidellm_of_two_generations(write):
    old = {"start_time": 100.0, "prompt_tokens": 10, "output_tokens": 5}
    new = {"request_start_time": 104.5, "input_metrics": {"text_tokens": 7},
           "output_metrics": {"text_tokens": 3}}  # fmt: skip
    report = {"benchmarks": [{"requests": {"successful": [old, new], "errored": [{}, {}]}}]}
    found = read_trace(write(json.dumps(report, indent=1)))
    assert found.format == "guidellm"
    assert found.requests.input_tokens.tolist() == [10, 7]
    assert np.diff(found.requests.arrive_s).tolist() == [4.5]
    assert told(found, "2 errored")


def test_guidellm_sweeps_must_be_chosen_from(write):
    one = {"requests": {"successful": [{"start_time": 1, "prompt_tokens": 1, "output_tokens": 2}]}}
    path = write(json.dumps({"benchmarks": [one, one]}))
    with pytest.raises(InputError, match="benchmark=0 to benchmark=1"):
        read_trace(path)
    assert len(read_trace(path, TraceQuery(where=(("benchmark", "1"),))).requests) == 1
    with pytest.raises(InputError, match="no benchmark 7"):
        read_trace(path, TraceQuery(where=(("benchmark", "7"),)))
    with pytest.raises(InputError, match="no benchmark first"):
        read_trace(path, TraceQuery(where=(("benchmark", "first"),)))


def test_vllm_bench_with_and_without_times(write):
    result = {"input_lens": [10, 20, 30], "output_lens": [1, 2, 0], "errors": ["", "", "boom"]}
    bare = read_trace(write(json.dumps(result)))
    assert bare.format == "vllm-bench"
    assert not bare.has_arrivals
    assert len(bare.requests) == 2
    timed = read_trace(write(json.dumps(result | {"start_times": [5.0, 5.5, 6.0]}, indent=2)))
    assert timed.requests.arrive_s.tolist() == [5.0, 5.5]
    assert told(timed, "1 requests that failed")
    with pytest.raises(InputError, match="one of each per request"):
        read_trace(write(json.dumps(result | {"output_lens": [1]})))


def test_summaries_are_refused_with_what_to_ask_for(write):
    with pytest.raises(InputError, match="save-detailed"):
        read_trace(write(json.dumps({"request_throughput": {"avg": 1.0}, "ttft": {"p50": 2}})))
    log = {"0": {"out_len": 409, "in_len": 476, "record_time": 1.0}}
    with pytest.raises(InputError, match="characters"):
        read_trace(write(json.dumps(log)))


def test_plain_csv_by_names_that_are_known(write):
    found = read_trace(write("arrival_ms;Prompt Tokens;completion-tokens\n0;5;6\n1500;7;8\n"))
    assert found.format == "csv"
    assert found.requests.arrive_s.tolist() == [0.0, 1.5]
    assert told(found, "columns taken: time = arrival_ms, input = Prompt Tokens")


def test_plain_csv_by_a_map(write):
    path = write("when,who,a,b,urgency\n10,x,5,6,1\n20,y,7,8,0\n30,x,1,1,2\n")
    columns = ColumnMap(
        arrive="when", input_tokens="a", output_tokens="b", session="who", priority="urgency",
        time_unit="ms",
    )  # fmt: skip
    found = read_trace(path, TraceQuery(columns=columns))
    assert found.requests.arrive_s.tolist() == [0.01, 0.02, 0.03]
    assert found.requests.session.tolist() == [0, 1, 0]
    assert found.requests.priority.tolist() == [1, 0, 2]


def test_what_requests_ask_for_is_read_beside_what_they_got(write):
    found = read_trace(write("ts,input_tokens,output_tokens,max_tokens\n0,5,6,100\n1,7,8,\n"))
    assert found.requests.max_tokens.tolist() == [100, -1]
    assert told(found, "max = max_tokens")
    line = '{"ts": %d, "input_tokens": 5, "output_tokens": 6, "max_new_tokens": %s}'
    found = read_trace(write("\n".join([line % (0, "64"), line % (1, "null")])))
    assert found.requests.max_tokens.tolist() == [64, -1]
    assert found.requests.take([0]).max_tokens.tolist() == [64]
    columns = ColumnMap(arrive="ts", input_tokens="a", output_tokens="b", max_tokens="most")
    found = read_trace(write("ts,a,b,most\n0,5,6,-3\n1,5,6,12\n"), TraceQuery(columns=columns))
    assert found.requests.max_tokens.tolist() == [-1, 12]


def test_a_map_names_what_is_not_there(write):
    path = write("when,a,b\n1,2,3\n")
    columns = ColumnMap(arrive="wen", input_tokens="a", output_tokens="zzz")
    with pytest.raises(InputError) as caught:
        read_trace(path, TraceQuery(columns=columns))
    assert len(caught.value.problems) == 2
    assert "did you mean when" in str(caught.value)


def test_arrivals_alone_can_be_mapped(write):
    path = write("gmt_create,exec_time\n2024-11-15 16:57:50,32.0\n2024-11-15 16:58:00,5\n")
    columns = ColumnMap(arrive="gmt_create", input_tokens=None, output_tokens=None)
    found = read_trace(path, TraceQuery(columns=columns))
    assert found.requests.arrive_s.tolist() == [0.0, 10.0]
    assert told(found, "counts as one token")


@pytest.mark.parametrize(
    ("first", "second"),
    [(1_700_000_000, 1_700_000_002), (1_700_000_000_000, 1_700_000_002_000),
     (1_700_000_000_000_000, 1_700_000_002_000_000)],
)  # fmt: skip
def test_the_unit_of_times_since_1970_is_told_by_their_size(write, first, second):
    found = read_trace(
        write(jsonl(*({"timestamp": t, "prompt_tokens": 1, "output_tokens": 1}
                      for t in (first, second))))
    )  # fmt: skip
    assert found.format == "jsonl"
    assert found.requests.arrive_s.tolist() == [0.0, 2.0]
    assert found.start_at.startswith("2023-11-14")
    assert told(found, "are taken for")


def test_parquet_with_dates_and_choice(tmp_path):
    path = tmp_path / "trace.parquet"
    frame = pl.DataFrame(
        {
            "timestamp": ["2024-01-01 00:00:00", "2024-01-01 00:00:02.5", None],
            "input_tokens": [1, 2, 3],
            "output_tokens": [4.0, 5.0, 6.0],
            "pool": ["a", "b", "b"],
        }
    ).with_columns(pl.col("timestamp").str.to_datetime())
    frame.write_parquet(path)
    found = read_trace(path)
    assert found.format == "parquet"
    assert found.requests.arrive_s.tolist() == [0.0, 2.5]
    assert found.n_bad == 1
    assert found.bad[0].where == "row 3"
    chosen = read_trace(path, TraceQuery(where=(("pool", "a"),)))
    assert len(chosen.requests) == 1


def test_parquet_that_is_broken_is_refused(write):
    with pytest.raises(InputError, match="Parquet"):
        read_trace(write(b"PAR1" + b"\x00" * 50))


def test_gzip_is_unpacked(write):
    text = b"arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,3\n"
    assert len(read_trace(write(gzip.compress(text, mtime=0))).requests) == 1


def test_streaming_gives_the_same_rows(write, monkeypatch):
    monkeypatch.setattr("gpuplan.inputs.traces.csv_trace.N_BLOCK_ROWS", 7)
    lines = "".join(f"{i * 0.25},{i + 1},{i % 5}\n" for i in range(50))
    path = write("arrived_at,num_prefill_tokens,num_decode_tokens\n" + lines)
    stream = stream_trace(path)
    parts = list(stream)
    assert (stream.format, stream.n_bad) == ("vidur", 0)
    assert len(parts) == 8
    whole = read_trace(path).requests
    assert np.array_equal(np.concatenate([p.arrive_s for p in parts]), whole.arrive_s)
    assert np.array_equal(np.concatenate([p.input_tokens for p in parts]), whole.input_tokens)


def test_streaming_counts_what_it_leaves_out(write):
    lines = "# by hand\narrived_at,num_prefill_tokens,num_decode_tokens\n5,1,1\n6,x,1\n7,1\n8,1,1\n"
    stream = stream_trace(write(lines))
    assert sum(len(part) for part in stream) == 2
    assert stream.n_bad == 2
    assert [problem.where for problem in stream.bad] == ["line 5", "line 4"]
    assert "1 comment lines" in stream.remarks


def test_streaming_refuses_several_runs(write):
    path = write("run,arrival_s,input_tokens,output_tokens\na,1,1,1\nb,2,1,1\n")
    with pytest.raises(InputError, match="2 runs"):
        list(stream_trace(path))


def test_streaming_refuses_what_it_cannot_sort(write):
    path = write("arrived_at,num_prefill_tokens,num_decode_tokens\n5,1,1\n4,1,1\n")
    with pytest.raises(InputError, match="out of order"):
        list(stream_trace(path))
