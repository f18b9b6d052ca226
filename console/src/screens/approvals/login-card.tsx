import type { ReactNode } from "react";
import type { WaitingLogin } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useChange } from "../../api/use-server.ts";
import { Button } from "../../ui/button.tsx";
import { visible } from "../../ui/text.ts";
import { Age, Moment } from "../../ui/time.tsx";

/** An MCP server that asks for a login, and the login: in a new tab, because this page has the key only in its memory. */
export function LoginCard({ item }: { readonly item: WaitingLogin }): ReactNode {
  const { server, host, scope, requested_at } = item;
  const begin = useChange((client) => client.waiting.beginLogin(server), []);
  return (
    <li className="flex min-w-0 flex-col gap-3 rounded-lg border border-line bg-panel p-4">
      <div className="flex flex-wrap items-baseline gap-x-2 gap-y-1 text-sm">
        <h2 className="font-semibold text-sm">
          <span className="font-mono foreign">{visible(server)}</span> needs a login
        </h2>
        <span className="text-soft foreign">
          MCP server at <bdi>{visible(host)}</bdi>
        </span>
        <span className="ml-auto text-faint text-xs">
          <Age at={requested_at} />
        </span>
      </div>
      <p className="text-soft text-sm">
        Agents cannot use all that it offers until you log in. All agents of this project then act there with
        your rights.
        {scope === undefined ? null : (
          <>
            {" "}
            It asks for: <bdi className="font-mono text-xs foreign">{visible(scope)}</bdi>
          </>
        )}
      </p>
      {isReadOnly ? null : begin.data === undefined ? (
        <div>
          <Button variant="solid" isBusy={begin.isPending} onClick={() => begin.mutate(undefined)}>
            Log in
          </Button>
        </div>
      ) : (
        <div className="flex flex-wrap items-center gap-3">
          <a
            href={begin.data.url}
            target="_blank"
            rel="noreferrer"
            className="inline-flex min-h-8 items-center rounded-md bg-solid px-3 py-1.5 font-medium text-sm text-white hover:brightness-110"
          >
            {/* Whole: the end of a host says whose it is. */}
            <span className="foreign">Continue at {visible(new URL(begin.data.url).host)}</span>
          </a>
          <Button variant="quiet" isBusy={begin.isPending} onClick={() => begin.mutate(undefined)}>
            Begin again
          </Button>
          <p className="w-full text-soft text-sm" role="status">
            It opens in a new tab, and you have until <Moment at={begin.data.expires_at} />. This entry goes
            away once you are logged in.
          </p>
        </div>
      )}
      <p role="alert" className="text-bad text-sm empty:hidden foreign">
        {begin.error === null ? null : visible(begin.error.message)}
      </p>
    </li>
  );
}
