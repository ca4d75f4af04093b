"""The page on recorded loads runs as it stands."""

import re

from shared_data import ROOT


def test_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    stamps = "".join(f"2023-11-16 18:{i // 60:02}:{i % 60:02}.5,{i + 9},7\n" for i in range(600))
    azure = tmp_path / "AzureLLMInferenceTrace_conv.csv"
    azure.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + stamps)
    log = tmp_path / "log.csv"
    log.write_text("ts,prompt,completion,user,pool\n1500,10,5,a,chat\n2500,9,5,b,batch\n")
    page = (ROOT / "docs" / "howto" / "traces.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "times bear no zone" in printed
    assert "n_requests=15" in printed
    assert names["trace"].requests.arrive_s.tolist() == [1.5]
