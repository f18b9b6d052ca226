import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";

export interface Follow {
  readonly box: RefObject<HTMLDivElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
  readonly onScroll: () => void;
  /** Whether there is more below the view. */
  readonly hasMore: boolean;
  readonly scrollToEnd: () => void;
}

/** The distance to an edge, in pixels, that counts as none. */
const near = 60;
/** The space above the last message. */
const above = 16;

/**
 * Keeps the end of a growing conversation in view, but not past the beginning of the newest answer: the reader starts a
 * long answer at its start. A reader who scrolls to the end stays there; one who scrolls elsewhere is left alone until the
 * next message.
 *
 * `last` is the id of the newest message of the user; its element has the attribute `data-message`.
 */
export function useFollow(last: string | undefined, entries: unknown): Follow {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const mode = useRef<"answer" | "end" | "free">("answer");
  const position = useRef(0);
  const [hasMore, setMore] = useState(false);

  const follow = (): void => {
    const element = box.current;
    if (element === null) return;
    const end = element.scrollHeight - element.clientHeight;
    if (mode.current !== "free") {
      const messages = element.querySelectorAll<HTMLElement>("[data-message]");
      const message = messages.item(messages.length - 1) as HTMLElement | null;
      const start =
        message === null
          ? end
          : message.getBoundingClientRect().top -
            element.getBoundingClientRect().top +
            element.scrollTop -
            above;
      element.scrollTop = mode.current === "end" ? end : Math.min(end, Math.max(0, start));
      position.current = element.scrollTop;
    }
    setMore(end - element.scrollTop > near);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new message is followed, whatever was read before.
  useLayoutEffect(() => {
    mode.current = "answer";
  }, [last]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect runs when the list of entries changes.
  useLayoutEffect(follow, [entries]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the observer reads the current values.
  useEffect(() => {
    const observer = new ResizeObserver(follow);
    if (content.current !== null) observer.observe(content.current);
    return () => observer.disconnect();
  }, []);
  return {
    box,
    content,
    hasMore,
    onScroll() {
      const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
      const isAtEnd = scrollHeight - scrollTop - clientHeight < near;
      setMore(!isAtEnd);
      // The page's own scrolling is no wish of the reader.
      if (Math.abs(scrollTop - position.current) < 2) return;
      position.current = scrollTop;
      mode.current = isAtEnd ? "end" : "free";
    },
    scrollToEnd() {
      mode.current = "end";
      follow();
    },
  };
}
