import { Link } from "@tanstack/react-router";
import { type ComponentProps, memo, type ReactNode, useId, useMemo, useRef, useState } from "react";
import ReactMarkdown, { type Components, type ExtraProps } from "react-markdown";
import remarkGfm from "remark-gfm";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { fileOfLink } from "./link-target.ts";
import { splitBlocks } from "./split-blocks.ts";
import { isTame } from "./tame-markdown.ts";
import { visible } from "./text.ts";

/** How many characters are shown at first, and how many each time the user asks for more. */
const pieceLength = 60_000;

const shared: Components = {
  // The page loads nothing that a text of a model or a repository names.
  img: ({ alt, src }) => <span className="text-soft">[picture: {alt || String(src ?? "")}]</span>,
  pre: CodeBlock,
  input: ({ checked }) => (
    <input
      type="checkbox"
      checked={checked === true}
      disabled
      aria-label={checked === true ? "done" : "open"}
    />
  ),
  table: ({ children }) => (
    <div className="overflow-x-auto" tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
};

/** A block of code with its language, and a button that copies it. */
function CodeBlock({ children, node }: ComponentProps<"pre"> & ExtraProps): ReactNode {
  const box = useRef<HTMLPreElement>(null);
  const [code] = node?.children ?? [];
  const names = code?.type === "element" ? code.properties.className : undefined;
  const language = Array.isArray(names) ? /^language-(.+)/.exec(names.join(" "))?.[1] : undefined;
  return (
    <div className="overflow-hidden rounded-md border border-line bg-sunken">
      <div className="flex items-center justify-between border-line border-b py-0.5 pr-1 pl-3 text-soft text-xs">
        <span className="font-mono">{language ?? "text"}</span>
        <CopyButton textOf={() => box.current?.textContent ?? ""} />
      </div>
      <pre
        ref={box}
        tabIndex={0}
        role="group"
        aria-label={language === undefined ? "Code" : `Code in ${language}`}
        className="overflow-x-auto p-3 font-mono text-xs"
      >
        {children}
      </pre>
    </div>
  );
}

/** Links of a model's text: to other sites, to files of the repository, and to its own footnotes. Others are text. */
const ofModel: Components = {
  ...shared,
  a: ({ href = "", children, ...link }) => {
    if (/^(?:https?|mailto):/i.test(href))
      return (
        <a
          href={href}
          target="_blank"
          rel="noreferrer noopener"
          title={href}
          className="text-accent underline"
        >
          {children}
        </a>
      );
    if (href.startsWith("#"))
      return (
        <FootnoteLink id={link.id} href={href}>
          {children}
        </FootnoteLink>
      );
    return (
      <FileLink href={href} from="">
        {children}
      </FileLink>
    );
  },
};

/** A footnote, or the way back from it. The page's base address is another one, so the browser cannot follow it. */
function FootnoteLink({ href = "", children, id }: ComponentProps<"a">): ReactNode {
  return (
    <a
      href={href}
      id={id}
      onClick={(event) => {
        event.preventDefault();
        document.getElementById(decodeURIComponent(href.slice(1)))?.scrollIntoView({ block: "center" });
      }}
      className="text-accent underline"
    >
      {children}
    </a>
  );
}

/** A link to a file of the repository; other addresses are shown as text. */
function FileLink({
  href,
  from,
  children,
}: {
  readonly href: string;
  readonly from: string;
  readonly children?: ReactNode;
}): ReactNode {
  const place = fileOfLink(href, from);
  if (place === undefined)
    return (
      <span>
        {children}
        {href === "" || href.startsWith("#") ? null : (
          <span className="text-soft">{` (${visible(href)})`}</span>
        )}
      </span>
    );
  const { path, line } = place;
  const search = { path, line: line === undefined ? undefined : String(line) };
  return (
    <Link to="/console/files" search={search} className="text-accent underline">
      {children}
    </Link>
  );
}

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
    a: ({ href = "", children }) => (
      <FileLink href={href} from={from}>
        {children}
      </FileLink>
    ),
  };
}

const plugins = [remarkGfm];

interface BlockProps {
  readonly text: string;
  readonly components: Components;
  /** The beginning of the ids of footnotes. */
  readonly prefix: string;
}

const Block = memo(function Block({ text, components, prefix }: BlockProps): ReactNode {
  if (!isTame(text)) return <p className="whitespace-pre-wrap">{text}</p>;
  return (
    <ReactMarkdown
      remarkPlugins={plugins}
      remarkRehypeOptions={{ clobberPrefix: prefix }}
      components={components}
      // `components` renders the links, and decides which are safe.
      urlTransform={(url) => url}
    >
      {text}
    </ReactMarkdown>
  );
});

/** A footnote's text is in another block than its mark. */
const footnote = /^ {0,3}\[\^[^\]\n]{1,100}\]:/m;

/** Returns the beginning of a text, cut between two words. */
function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  const end = text.slice(0, length).search(/\s\S{0,200}$/);
  return text.slice(0, end > 0 ? end : length);
}

interface MarkdownProps {
  readonly text: string;
  /** The file of the repository that contains the text, to resolve its links. Left out for a model's text. */
  readonly from?: string | undefined;
}

/** Markdown of a model or a repository. HTML in it is shown as text; no image is loaded. */
export function Markdown({ text, from }: MarkdownProps): ReactNode {
  const [length, setLength] = useState(pieceLength);
  const components = useMemo(() => (from === undefined ? ofModel : ofRepository(from)), [from]);
  const prefix = `note-${useId()}-`;
  const visibleText = cutText(text, length);
  const rest = text.length - visibleText.length;
  const blocks = footnote.test(visibleText) ? [visible(visibleText)] : splitBlocks(visible(visibleText));
  return (
    <div className="markdown foreign" dir="auto">
      {blocks.map((block, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block is identified by its position; the text grows at its end.
        <Block key={at} text={block} components={components} prefix={prefix} />
      ))}
      {rest > 0 ? (
        <Button onClick={() => setLength(length + pieceLength)}>
          {`Show more: ${rest.toLocaleString()} characters are left`}
        </Button>
      ) : null}
    </div>
  );
}
