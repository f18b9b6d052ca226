import { Dialog } from "@base-ui/react/dialog";
import { type ReactNode, useId, useState } from "react";
import { Button } from "./button.tsx";

interface JsonFormProps {
  /** The text of the button that opens the window, and its title. */
  readonly label: string;
  readonly variant?: "plain" | "solid";
  readonly value: unknown;
  readonly children?: ReactNode;
  /** Gives what went wrong, where something did. */
  readonly onSubmit: (value: unknown) => Promise<void>;
}

/** Asks for a JSON value in a window, checks that it is one, and says what the server answers to it. */
export function JsonForm({ label, variant = "plain", value, children, onSubmit }: JsonFormProps): ReactNode {
  const field = useId();
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  async function submit(): Promise<void> {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch (error) {
      setProblem(`This is no JSON: ${error instanceof Error ? error.message : error}`);
      return;
    }
    setBusy(true);
    setProblem(undefined);
    try {
      await onSubmit(parsed);
      setOpen(false);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  }
  return (
    <Dialog.Root
      open={isOpen}
      onOpenChange={(open) => {
        setOpen(open);
        setProblem(undefined);
        if (open) setText(JSON.stringify(value ?? {}, null, 2));
      }}
    >
      <Dialog.Trigger render={<Button variant={variant}>{label}</Button>} />
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-30 bg-black/40" />
        <Dialog.Popup className="fixed top-1/2 left-1/2 z-40 flex max-h-[90dvh] w-[min(36rem,calc(100vw-2rem))] -translate-1/2 flex-col gap-3 rounded-xl border border-line bg-panel p-4 shadow-xl">
          <Dialog.Title className="font-semibold text-base">{label}</Dialog.Title>
          {children}
          <label htmlFor={field} className="text-soft text-sm">
            Payload (JSON)
          </label>
          <textarea
            id={field}
            value={text}
            spellCheck={false}
            rows={10}
            onChange={({ target }) => setText(target.value)}
            className="rounded-md border border-line-strong bg-back p-2.5 font-mono text-xs"
          />
          {problem === undefined ? null : (
            <p role="alert" className="text-bad text-sm foreign">
              {problem}
            </p>
          )}
          <div className="flex justify-end gap-2">
            <Dialog.Close render={<Button variant="quiet">Close</Button>} />
            <Button variant="solid" isBusy={isBusy} onClick={() => void submit()}>
              Send
            </Button>
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
