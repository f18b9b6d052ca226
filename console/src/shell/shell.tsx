import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { isReadOnly, session } from "../api/server.ts";
import { useIsRefused, useServer } from "../api/use-server.ts";
import { useInbox } from "../screens/approvals/use-inbox.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { ConnectionBar } from "./connection-bar.tsx";
import { navigation } from "./navigation.ts";
import { Shortcuts } from "./shortcuts.tsx";
import { SignIn } from "./sign-in.tsx";
import { type Theme, useTheme } from "./theme.ts";
import { TitleContext } from "./title.ts";

/** The frame of every screen: navigation, sign-in, and the tab's title with the number of items that wait for a person. */
export function Shell(): ReactNode {
  const [title, setTitle] = useState("");
  const isRefused = useIsRefused();
  const { waiting, hasService, project } = useShellFacts(!isRefused);
  useEffect(() => {
    const name = project === undefined ? "kit" : `${project} · kit`;
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title === "" ? "" : `${title} · `}${name}`;
  }, [title, waiting, project]);

  if (isRefused) return <SignIn />;
  const menu = <Menu waiting={waiting} hasService={hasService} project={project} />;
  return (
    <TitleContext value={setTitle}>
      <Shortcuts hasService={hasService} />
      <button
        type="button"
        onClick={() => document.getElementById("main")?.focus()}
        className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded-md focus:bg-panel focus:px-3 focus:py-2"
      >
        Skip to content
      </button>
      <div className="flex h-dvh flex-col md:flex-row">
        <aside className="hidden w-54 shrink-0 border-line border-r md:flex">{menu}</aside>
        <PhoneBar waiting={waiting}>{menu}</PhoneBar>
        <main
          id="main"
          // It scrolls, so the keyboard has to reach it.
          tabIndex={0}
          className="flex min-h-0 min-w-0 flex-1 flex-col overflow-y-auto outline-none ring-inset ring-line-strong focus-visible:ring-1"
        >
          <ConnectionBar />
          <Outlet />
        </main>
      </div>
    </TitleContext>
  );
}

/** Loads what the navigation needs: the number of items that wait for a person, whether there are agents, and the project's name. */
function useShellFacts(enabled: boolean): {
  readonly waiting: number;
  readonly hasService: boolean;
  readonly project: string | undefined;
} {
  const overview = useServer({
    key: ["overview"],
    ask: (client, signal) => client.overview({ signal }),
    everyMs: 30_000,
    enabled,
  });
  // Most servers have agents: until this one says otherwise, their screens keep their places.
  const hasService = overview.data === undefined || overview.data.agents !== undefined;
  const inbox = useInbox(enabled && overview.data?.agents !== undefined);
  return { waiting: inbox.data?.total ?? 0, hasService, project: overview.data?.project };
}

interface MenuProps {
  readonly waiting: number;
  readonly hasService: boolean;
  readonly project: string | undefined;
}

function Menu({ waiting, hasService, project }: MenuProps): ReactNode {
  return (
    <div className="flex min-h-0 w-full flex-1 flex-col gap-4 overflow-y-auto p-3">
      <div className="flex h-8 items-center gap-2 px-2">
        <img src={new URL("icon.svg", document.baseURI).href} alt="" className="size-5" />
        <span className="truncate font-semibold text-sm" title={project}>
          <bdi>{project ?? "kit"}</bdi>
        </span>
      </div>
      <nav aria-label="Screens" className="flex flex-col gap-4">
        {navigation.map((group) => {
          const visible = group.filter(({ needsService }) => hasService || needsService !== true);
          return visible.length === 0 ? null : (
            <ul key={group[0]?.label} className="flex flex-col gap-px">
              {visible.map(({ label, icon, link }) => (
                <li key={label}>
                  <Link
                    to={link}
                    activeOptions={{ exact: link === "/" }}
                    className="flex h-9 md:h-8 items-center gap-2.5 rounded-md px-2 text-soft text-sm hover:bg-raised hover:text-ink data-[status=active]:bg-raised data-[status=active]:font-medium data-[status=active]:text-ink"
                  >
                    <Icon name={icon} />
                    {label}
                    {link === "/console/approvals" && waiting > 0 ? (
                      <span className="ml-auto rounded-full bg-warn-back px-1.5 font-medium text-warn text-xs tabular">
                        {waiting.toLocaleString()}
                        <span className="sr-only"> waiting</span>
                      </span>
                    ) : null}
                  </Link>
                </li>
              ))}
            </ul>
          );
        })}
      </nav>
      <div className="mt-auto flex flex-col gap-2 px-2">
        {isReadOnly ? (
          <p className="rounded-md border border-line px-2 py-1 text-soft text-xs">
            Read-only: this page changes nothing.
          </p>
        ) : null}
        <div className="flex items-center justify-between">
          <ThemeChoice />
          <SignOut />
        </div>
      </div>
    </div>
  );
}

/** In a narrow window a button opens the navigation. */
function PhoneBar({
  waiting,
  children,
}: {
  readonly waiting: number;
  readonly children: ReactNode;
}): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect closes the menu when the screen changes.
  useEffect(() => setOpen(false), [path]);
  return (
    <>
      <header className="flex h-12 shrink-0 items-center gap-2 border-line border-b px-3 md:hidden">
        <button
          type="button"
          aria-label="Menu"
          aria-haspopup="dialog"
          onClick={() => setOpen(true)}
          className="grid size-9 place-items-center rounded-md text-soft hover:bg-raised"
        >
          <Icon name="menu" />
        </button>
        <img src={new URL("icon.svg", document.baseURI).href} alt="" className="size-5" />
        {waiting > 0 ? (
          <Link
            to="/console/approvals"
            className="ml-auto rounded-full bg-warn-back px-2.5 py-1 font-medium text-warn text-xs"
          >
            {waiting.toLocaleString()} waiting
          </Link>
        ) : null}
      </header>
      {isOpen ? (
        <Dialog title="Menu" place="left" hidesTitle onClose={() => setOpen(false)}>
          {children}
        </Dialog>
      ) : null}
    </>
  );
}

const themes: readonly Theme[] = ["system", "light", "dark"];
const themeIcons = { system: "system", light: "sun", dark: "moon" } as const;

function ThemeChoice(): ReactNode {
  const [theme, setTheme] = useTheme();
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "system";
  return (
    <button
      type="button"
      onClick={() => setTheme(next)}
      title={`Colours: ${theme}`}
      aria-label={`Colours: ${theme}. Change to ${next}`}
      className="-ml-1.5 grid size-8 place-items-center rounded-md text-soft hover:bg-raised hover:text-ink"
    >
      <Icon name={themeIcons[theme]} />
    </button>
  );
}

function SignOut(): ReactNode {
  if (session.current.key === undefined) return null;
  return (
    <button
      type="button"
      onClick={() => session.signOut()}
      className="rounded-md px-2 py-1 text-soft text-xs hover:bg-raised hover:text-ink"
    >
      Sign out
    </button>
  );
}
