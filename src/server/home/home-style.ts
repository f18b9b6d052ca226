/** The style of the start page; its digest stands in the page's content security policy. */
export const homeStyle = `
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6475; --line: #e3e6ec; --back: #f7f8fa; --card: #fff; --link: #2450c5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7eaf0; --soft: #9aa4b5; --line: #2c3443; --back: #12161e; --card: #1a202b; --link: #8fb0ff; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3.5rem 1.25rem 4rem; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -0.02em; overflow-wrap: anywhere; }
h1 small { font-size: 0.9rem; font-weight: 400; letter-spacing: 0; color: var(--soft); }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1.05rem; }
p { margin: 0.5rem 0 0; color: var(--soft); }
a { color: var(--link); text-decoration: none; overflow-wrap: anywhere; }
a:hover, a:focus-visible { text-decoration: underline; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: 1rem; margin-top: 2rem; }
.card { padding: 1.1rem 1.25rem; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.card strong { display: block; font-size: 1.75rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.card ul { margin: 0.6rem 0 0; padding: 0; list-style: none; color: var(--soft); font-size: 0.92rem; }
.card li { display: flex; justify-content: space-between; gap: 1rem; }
dl { margin: 0; border: 1px solid var(--line); border-radius: 10px; background: var(--card); }
dl div { padding: 0.7rem 1.25rem; }
dl div + div { border-top: 1px solid var(--line); }
dt { color: var(--soft); font-size: 0.92rem; }
dd { margin: 0; font: 0.92rem/1.5 ui-monospace, monospace; }
pre { margin: 0; padding: 0.9rem 1.25rem; overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; font: 0.88rem/1.6 ui-monospace, monospace; }
`;
