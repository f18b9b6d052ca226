import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { Dialog } from "../ui/dialog.tsx";
import { type NavigationEntry, navigation } from "./navigation.ts";

/** A second letter counts within this time after `g`, in ms. */
const togetherMs = 1_500;

/**
 * Keys for the whole page: `/` goes to the search field, `g` and a letter open a screen, Ctrl-K opens the list of screens, `?` shows
 * all keys. None of them acts while a field has the focus, except Ctrl-K.
 */
export function Shortcuts({ hasService }: { readonly hasService: boolean }): ReactNode {
  const [openWindow, setOpenWindow] = useState<"keys" | "screens">();
  const navigate = useNavigate();
  const entries = navigation.flat().filter(({ needsService }) => hasService || needsService !== true);
  useEffect(() => {
    let goingSince = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setOpenWindow("screens");
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || takesText(event.target))
        return;
      const isGoing = event.timeStamp - goingSince < togetherMs;
      goingSince = Number.NEGATIVE_INFINITY;
      const target = isGoing ? entries.find(({ key }) => key === event.key) : undefined;
      if (target !== undefined) void navigate({ to: target.link });
      else if (event.key === "g") {
        goingSince = event.timeStamp;
        return;
      } else if (event.key === "?") setOpenWindow("keys");
      else if (event.key === "/") {
        const field = document.querySelector<HTMLInputElement>("#main [data-search]");
        if (field === null) setOpenWindow("screens");
        else field.select();
      } else return;
      event.preventDefault();
    };
    // Before the keys of a list on the page, which would take a letter after `g` for the start of a name.
    document.addEventListener("keydown", onKey, { capture: true });
    return () => document.removeEventListener("keydown", onKey, { capture: true });
  }, [entries, navigate]);
  const close = (): void => setOpenWindow(undefined);
  if (openWindow === "keys") return <Keys entries={entries} onClose={close} />;
  return openWindow === "screens" ? <Finder entries={entries} onClose={close} /> : null;
}

function takesText(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.closest("dialog") !== null ||
      /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

interface WindowProps {
  readonly entries: readonly NavigationEntry[];
  readonly onClose: () => void;
}

function Keys({ entries, onClose }: WindowProps): ReactNode {
  const keys = [
    ["?", "These keys"],
    ["/", "The search field of this screen"],
    ["Ctrl K", "Find a screen, a spec, or the rules of a file"],
    ...entries.map(({ key, label }) => [`g ${key}`, label]),
    ["Esc", "Closes a window"],
  ] as const;
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="grid grid-cols-[6rem_1fr] gap-y-1.5 text-sm">
        {keys.map(([key = "", label]) => (
          <div key={key} className="contents">
            <dt className="flex gap-1">
              {key.split(" ").map((one) => (
                <kbd key={one} className="rounded border border-line bg-sunken px-1.5 font-mono text-xs">
                  {one}
                </kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

interface Target {
  readonly label: string;
  readonly aside?: string;
  readonly go: () => Promise<void>;
}

/** A field that finds screens, specs by their words, and the rules of a file. */
function Finder({ entries, onClose }: WindowProps): ReactNode {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const navigate = useNavigate();
  const words = text.trim();
  const screens = entries
    .filter(({ label }) => label.toLowerCase().includes(words.toLowerCase()))
    .map(({ label, link, key }): Target => ({ label, aside: `g ${key}`, go: () => navigate({ to: link }) }));
  const searches: readonly Target[] =
    words === ""
      ? []
      : [
          {
            label: `Specs with “${words}”`,
            go: () => navigate({ to: "/console/specs", search: { q: words } }),
          },
          {
            label: `Rules for the file ${words}`,
            go: () => navigate({ to: "/console/guidelines/explain", search: { file: words } }),
          },
        ];
  const isFile = /[/.]/.test(words);
  const targets = isFile ? [...searches.toReversed(), ...screens] : [...screens, ...searches];
  const chosen = Math.min(at, targets.length - 1);
  const follow = (target: Target | undefined): void => {
    if (target === undefined) return;
    onClose();
    void target.go();
  };
  return (
    <Dialog title="Go to" place="top" hidesTitle onClose={onClose}>
      <input
        role="combobox"
        aria-label="Find a screen, a spec, or the rules of a file"
        aria-controls="targets"
        aria-expanded="true"
        aria-activedescendant={`target-${chosen}`}
        placeholder="Find a screen, a spec, or the rules of a file"
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") follow(targets[chosen]);
          else if (event.key === "ArrowDown") setAt(Math.min(targets.length - 1, chosen + 1));
          else if (event.key === "ArrowUp") setAt(Math.max(0, chosen - 1));
          else return;
          event.preventDefault();
        }}
        className="h-12 shrink-0 border-line border-b bg-panel px-4 text-base outline-none placeholder:text-faint"
      />
      <div id="targets" role="listbox" aria-label="Targets" className="overflow-y-auto p-1.5">
        {targets.map((target, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys.
          <div
            key={target.label}
            id={`target-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => follow(target)}
            className={`flex min-h-9 cursor-pointer items-center rounded-md px-2.5 text-sm hover:bg-raised ${index === chosen ? "bg-raised" : ""}`}
          >
            <span className="min-w-0 truncate foreign">{target.label}</span>
            <span className="ml-auto font-mono text-faint text-xs">{target.aside}</span>
          </div>
        ))}
      </div>
    </Dialog>
  );
}
