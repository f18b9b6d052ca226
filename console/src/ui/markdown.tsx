import { memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { splitBlocks } from "./split-blocks.ts";
import { visible } from "./text.ts";

/** Longer blocks are shown as they are: a reader of Markdown takes its time for them. */
const longestBlock = 20_000;

const components: Components = {
  // Nothing is loaded because a model names it.
  img: ({ alt, src }) => <span className="text-soft">[picture: {alt || String(src ?? "")}]</span>,
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener" title={href} className="text-accent underline">
      {children}
    </a>
  ),
  pre: ({ children }) => (
    <pre
      tabIndex={0}
      className="overflow-x-auto rounded-md border border-line bg-sunken p-3 font-mono text-xs"
    >
      {children}
    </pre>
  ),
  table: ({ children }) => (
    <div className="overflow-x-auto">
      <table>{children}</table>
    </div>
  ),
};

const plugins = [remarkGfm];

const Block = memo(function Block({ text }: { readonly text: string }): ReactNode {
  if (text.length > longestBlock) return <p className="whitespace-pre-wrap">{text}</p>;
  return (
    <ReactMarkdown remarkPlugins={plugins} components={components}>
      {text}
    </ReactMarkdown>
  );
});

/** Markdown of a model or a repository. HTML in it is text; no picture is loaded. */
export function Markdown({ text }: { readonly text: string }): ReactNode {
  return (
    <div className="markdown foreign" dir="auto">
      {splitBlocks(visible(text)).map((block, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block is its place; the text grows at its end.
        <Block key={at} text={block} />
      ))}
    </div>
  );
}
