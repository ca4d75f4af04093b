"""The look of the page: one style sheet, light and dark, no fonts from elsewhere."""

STYLE = """
:root{--bg:#fff;--fg:#1b2530;--soft:#5b6b7a;--line:#d9e0e6;--card:#f5f8fa;--good:#1a7f4b;
--bad:#c0392b;--c0:#2463b4;--c1:#d9772b;--c2:#2a9d6f;--c3:#8e5bb5;--c4:#b83b5e;--c5:#6b7280}
@media(prefers-color-scheme:dark){:root{--bg:#12181f;--fg:#e6edf3;--soft:#9aa9b6;--line:#2c3843;
--card:#1a232c;--good:#4cc38a;--bad:#ff7b72;--c0:#6ea8fe;--c1:#f0a35e;--c2:#5fd0a2;--c3:#c198e0}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:26px;line-height:1.3;margin:0 0 4px}
h2{font-size:18px;margin:36px 0 10px;border-bottom:1px solid var(--line);padding-bottom:4px}
p.sub{color:var(--soft);margin:0 0 20px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 14px}
.card b{display:block;font-size:21px;line-height:1.25}.card span{color:var(--soft);font-size:13px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:16px}
figure{margin:0;border:1px solid var(--line);border-radius:8px;padding:10px}
figcaption{font-weight:600;margin-bottom:4px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th{color:var(--soft);font-weight:600;text-align:left}
th,td{padding:6px 10px;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}
ul{padding-left:20px;margin:8px 0}details{margin:8px 0}summary{cursor:pointer}
footer{margin-top:44px;color:var(--soft);font-size:13px}
code{background:var(--card);padding:1px 5px;border-radius:4px}
svg{width:100%;height:auto;display:block}
svg text{fill:var(--soft);font:12px system-ui,sans-serif}
svg .grid{stroke:var(--line)}svg .axis,svg .mid{stroke:var(--soft)}svg .bar{fill:var(--c0)}
svg .curve{fill:none;stroke-width:2.2}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}
.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}
.key.c0{fill:var(--c0)}.key.c1{fill:var(--c1)}.key.c2{fill:var(--c2)}.key.c3{fill:var(--c3)}
.key.c4{fill:var(--c4)}.key.c5{fill:var(--c5)}
@media print{details{display:block}.card,figure{break-inside:avoid}}
"""
