import { Link } from "@tanstack/react-router";
import { memo, type ReactNode, useMemo, useState } from "react";
import ReactMarkdown, { type Components, defaultUrlTransform } from "react-markdown";
import remarkGfm from "remark-gfm";
import { Button } from "./button.tsx";
import { fileOfLink } from "./link-target.ts";
import { splitBlocks } from "./split-blocks.ts";
import { isTame } from "./tame-markdown.ts";
import { visible } from "./text.ts";

/** The signs of a text that are shown before the reader asks for more, and with each further wish. */
const pieceLength = 60_000;

const shared: Components = {
  // Nothing is loaded because a model or a repository names it.
  img: ({ alt, src }) => <span className="text-soft">[picture: {alt || String(src ?? "")}]</span>,
  pre: ({ children }) => (
    <pre
      tabIndex={0}
      className="overflow-x-auto rounded-md border border-line bg-sunken p-3 font-mono text-xs"
    >
      {children}
    </pre>
  ),
  table: ({ children }) => (
    <div className="overflow-x-auto" tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
};

const ofModel: Components = {
  ...shared,
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener" title={href} className="text-accent underline">
      {children}
    </a>
  ),
};

/** Headings of a text stand below that of its panel, whichever levels the text leaves out. */
const headings: Components = Object.fromEntries(
  (["h1", "h2", "h3", "h4", "h5", "h6"] as const).map((name, at) => [
    name,
    ({ children }: { readonly children?: ReactNode }) => (
      <h3 className={at < 2 ? "text-base" : "text-sm"}>{children}</h3>
    ),
  ]),
);

/** Links of a repository's text lead to its files; others are told and not followed. */
function ofRepository(from: string): Components {
  return {
    ...shared,
    ...headings,
    a: ({ href = "", children }) => {
      const place = fileOfLink(href, from);
      if (place === undefined)
        return (
          <span>
            {children}
            {href.startsWith("#") ? null : <span className="text-soft">{` (${visible(href)})`}</span>}
          </span>
        );
      const { path, line } = place;
      const search = { path, line: line === undefined ? undefined : String(line) };
      return (
        <Link to="/console/files" search={search} className="text-accent underline">
          {children}
        </Link>
      );
    },
  };
}

const plugins = [remarkGfm];

interface BlockProps {
  readonly text: string;
  readonly components: Components;
  /** Links are told by `components`, so that none is left empty. */
  readonly keepsLinks: boolean;
}

const Block = memo(function Block({ text, components, keepsLinks }: BlockProps): ReactNode {
  if (!isTame(text)) return <p className="whitespace-pre-wrap">{text}</p>;
  return (
    <ReactMarkdown
      remarkPlugins={plugins}
      components={components}
      urlTransform={keepsLinks ? (url) => url : defaultUrlTransform}
    >
      {text}
    </ReactMarkdown>
  );
});

interface MarkdownProps {
  readonly text: string;
  /** The file of the repository that the text is from: its links lead to other files. Left out for a model's text. */
  readonly from?: string | undefined;
}

/** Markdown of a model or a repository. HTML in it is text; no picture is loaded. */
export function Markdown({ text, from }: MarkdownProps): ReactNode {
  const [length, setLength] = useState(pieceLength);
  const components = useMemo(() => (from === undefined ? ofModel : ofRepository(from)), [from]);
  const rest = text.length - length;
  return (
    <div className="markdown foreign" dir="auto">
      {splitBlocks(visible(rest > 0 ? text.slice(0, length) : text)).map((block, at) => (
        <Block
          // biome-ignore lint/suspicious/noArrayIndexKey: a block is its place; the text grows at its end.
          key={at}
          text={block}
          components={components}
          keepsLinks={from !== undefined}
        />
      ))}
      {rest > 0 ? (
        <Button onClick={() => setLength(length + pieceLength)}>
          {`Show more: ${rest.toLocaleString()} characters are left`}
        </Button>
      ) : null}
    </div>
  );
}
