"""How the page looks: on screens light and dark, wide and narrow, and on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c1c28; --soft: #585866; --paper: #ffffff; --panel: #f5f5fa; --line: #d9d9e3;
  --accent: #2e2585; --alarm: #a3122f; --alarm-panel: #fdf0f2; --warn: #8a5a00;
  --warn-panel: #fdf7e8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e8e8f0; --soft: #a9a9b8; --paper: #15151d; --panel: #1f1f2a; --line: #3a3a4a;
    --accent: #a9a1ff; --alarm: #ff8fa3; --alarm-panel: #34161d; --warn: #f2c46d;
    --warn-panel: #2e2614;
  }
  .picture path[stroke="#2e2585"], .picture line[stroke="#2e2585"] { stroke: #a9a1ff; }
  .picture path[fill="#2e2585"] { fill: #a9a1ff; }
  .picture path[stroke="#337538"], .picture line[stroke="#337538"] { stroke: #7cc583; }
  .picture path[fill="#337538"] { fill: #7cc583; }
  .picture path[fill="#444444"] { fill: #c9c9d6; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
header, main, footer { max-width: 46rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3rem; }
footer { padding-bottom: 3rem; color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }
.kind { color: var(--accent); font-weight: 600; letter-spacing: .02em; margin: 0; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .2rem 0 .8rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .6rem; }
p, ul, dl, figure, table { margin: 0 0 1rem; }
.lead { font-size: 1.15rem; color: var(--soft); }
section { padding: 1.4rem 0 .4rem; border-top: 1px solid var(--line); }
section.alarm, section#warnings {
  border: 0; border-left: .3rem solid var(--warn); background: var(--warn-panel);
  padding: 1rem 1.2rem .2rem; margin: 0 0 1.4rem; border-radius: .2rem;
}
section#warnings h2 { color: var(--warn); }
section.alarm { border-color: var(--alarm); background: var(--alarm-panel); font-size: 1.1rem; }
section.alarm h2 { color: var(--alarm); font-size: 1.8rem; }
.main { font-size: 1.1rem; font-weight: 600; }
li, dd, dt, p { overflow-wrap: anywhere; }
td, th { overflow-wrap: break-word; }
li { margin-bottom: .35rem; }
dl { display: grid; grid-template-columns: 10rem 1fr; gap: .35rem 1rem; }
dt { color: var(--soft); }
dd { margin: 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: .9rem; padding-bottom: .4rem; }
th, td { padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line); }
th { text-align: left; font-weight: 600; vertical-align: bottom; }
td { vertical-align: top; }
.number { text-align: right; }
th[scope="row"] { font-weight: 400; vertical-align: top; }
.wide { overflow-x: auto; }
figure.picture div { overflow-x: auto; }
figure.picture svg {
  width: 100%; height: auto; max-width: 42rem; min-width: 30rem; display: block;
}
figcaption { color: var(--soft); font-size: .9rem; padding-bottom: .4rem; }
.picture text { fill: var(--ink); }
.picture .role-axis-grid line { stroke: var(--line); }
.picture .role-axis-domain line, .picture .role-axis-tick line { stroke: var(--soft); }
div:focus-visible, pre:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px;
}
pre {
  background: var(--panel); padding: .7rem .9rem; border-radius: .3rem; overflow-x: auto;
  font: .9rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; margin: .2rem 0 0;
}
@media (max-width: 34rem) {
  header { padding-top: 1.5rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .6rem; }
  h1 { font-size: 1.5rem; }
}
@page { size: A4; margin: 18mm 16mm; }
@media print {
  :root {
    --ink: #000000; --soft: #444444; --paper: #ffffff; --panel: #f4f4f4; --line: #bbbbbb;
    --accent: #2e2585; --alarm: #a3122f; --alarm-panel: #ffffff; --warn: #8a5a00;
    --warn-panel: #ffffff;
  }
  body { font-size: 10.5pt; line-height: 1.45; }
  header, main, footer { max-width: none; padding: 0; }
  header { padding-top: 0; }
  h2 { break-after: avoid; }
  figure, tr, li, .facts, .short, pre { break-inside: avoid; }
  .main, .before { break-after: avoid; }
  thead { display: table-header-group; }
  figure.picture svg { max-width: 150mm; min-width: 0; }
  .wide, figure.picture div, pre { overflow: visible; }
  pre { white-space: pre-wrap; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
