import { Link } from "@tanstack/react-router";
import { memo, type ReactNode, useMemo, useState } from "react";
import ReactMarkdown, { type Components, defaultUrlTransform } from "react-markdown";
import remarkGfm from "remark-gfm";
import { Button } from "./button.tsx";
import { fileOfLink } from "./link-target.ts";
import { splitBlocks } from "./split-blocks.ts";
import { isTame } from "./tame-markdown.ts";
import { visible } from "./text.ts";

/** How many characters are shown at first, and how many each time the user asks for more. */
const pieceLength = 60_000;

const shared: Components = {
  // The page loads nothing that a text of a model or a repository names.
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

/** Headings of a text are one level below that of its panel, whichever levels the text skips. */
const headings: Components = Object.fromEntries(
  (["h1", "h2", "h3", "h4", "h5", "h6"] as const).map((name, at) => [
    name,
    ({ children }: { readonly children?: ReactNode }) => (
      <h3 className={at < 2 ? "text-base" : "text-sm"}>{children}</h3>
    ),
  ]),
);

/** Links of a repository's text lead to its files; other addresses are shown as text. */
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
  /** `components` renders the links, so that none is left empty. */
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
  /** The file of the repository that contains the text, to resolve its links. Left out for a model's text. */
  readonly from?: string | undefined;
}

/** Markdown of a model or a repository. HTML in it is shown as text; no image is loaded. */
export function Markdown({ text, from }: MarkdownProps): ReactNode {
  const [length, setLength] = useState(pieceLength);
  const components = useMemo(() => (from === undefined ? ofModel : ofRepository(from)), [from]);
  const rest = text.length - length;
  return (
    <div className="markdown foreign" dir="auto">
      {splitBlocks(visible(rest > 0 ? text.slice(0, length) : text)).map((block, at) => (
        <Block
          // biome-ignore lint/suspicious/noArrayIndexKey: a block is identified by its position; the text grows at its end.
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
