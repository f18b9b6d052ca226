import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { KitClient, KitError } from "../../../src/client/index.ts";
import { serverRoot, session } from "../api/server.ts";
import { Button } from "../ui/button.tsx";

/** Asks for the server's key, and tries it before the page continues. */
export function SignIn(): ReactNode {
  const field = useId();
  const [key, setKey] = useState("");
  const [remember, setRemember] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  // The field is all that this screen is for.
  useEffect(() => input.current?.focus(), []);

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    const found = await problemOf(key.trim());
    setBusy(false);
    if (found === undefined) session.signIn(key.trim(), { remember });
    else setProblem(found);
  }

  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <form
        onSubmit={submit}
        className="flex w-full max-w-sm flex-col gap-4 rounded-xl border border-line bg-panel p-6"
      >
        <img src={new URL("icon.svg", document.baseURI).href} alt="" className="size-8" />
        <div>
          <h1 className="font-semibold text-lg">Sign in</h1>
          <p className="mt-1 text-soft text-sm">
            This server asks for an API key: one of <code className="font-mono text-xs">KIT_API_KEYS</code>.
          </p>
        </div>
        <div className="flex flex-col gap-1.5">
          <label htmlFor={field} className="font-medium text-sm">
            API key
          </label>
          <input
            ref={input}
            id={field}
            type="password"
            autoComplete="off"
            required
            value={key}
            onChange={({ target }) => setKey(target.value)}
            aria-invalid={problem !== undefined}
            aria-describedby={`${field}-problem`}
            className="h-9 rounded-md border border-line-strong bg-back px-3 font-mono text-sm"
          />
          <p id={`${field}-problem`} role="alert" className="text-bad text-sm empty:hidden">
            {problem}
          </p>
        </div>
        <label className="flex items-start gap-2 text-soft text-sm">
          <input
            type="checkbox"
            checked={remember}
            onChange={({ target }) => setRemember(target.checked)}
            className="mt-1"
          />
          <span>Keep the key until this tab is closed. Otherwise a reload asks for it again.</span>
        </label>
        <Button variant="solid" type="submit" isBusy={isBusy}>
          Sign in
        </Button>
      </form>
    </main>
  );
}

/** Returns why the server refuses a key; `undefined` if it accepts the key. */
async function problemOf(key: string): Promise<string | undefined> {
  if (!/^[\x21-\x7e]+$/.test(key)) return "A key has no spaces and no letters beyond ASCII.";
  try {
    await new KitClient({ baseUrl: serverRoot, apiKey: key, retry: { attempts: 1 } }).overview();
    return undefined;
  } catch (error) {
    if (!(error instanceof KitError)) return String(error);
    // The key is valid, but has no right to read the project.
    if (error.code === "forbidden") return undefined;
    return error.code === "unauthorized" ? "The server does not know this key." : error.message;
  }
}
