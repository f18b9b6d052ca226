import { Fragment, type ReactNode } from "react";
import { type InlinePiece, splitInline } from "./inline-markdown.ts";
import { visible } from "./text.ts";

const tags = { strong: "strong", emphasis: "em", code: "code" } as const;

/** A short text of the repository, such as a criterion, with its bold words and code; each of its lines is a line. */
export function ShortMarkdown({ text }: { readonly text: string }): ReactNode {
  const lines = splitInline(text);
  return (
    <div className="markdown foreign" dir="auto">
      {lines.map((line, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity, and do not move.
        <p key={at} className="mt-0!">
          {line.map((piece, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: as above.
            <Piece key={index} piece={piece} />
          ))}
        </p>
      ))}
    </div>
  );
}

function Piece({ piece: { kind, text } }: { readonly piece: InlinePiece }): ReactNode {
  if (kind === "text") return <Fragment>{visible(text)}</Fragment>;
  const Tag = tags[kind];
  return <Tag>{visible(text)}</Tag>;
}
