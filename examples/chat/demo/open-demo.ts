import { type FakeChat, startFakeChat } from "./fake-chat.ts";
import { startScriptedModel } from "./scripted-model.ts";
import { type ServiceProcess, startService } from "./service-process.ts";

/** The moment to kill kit: while it waits for the model's answer, or for the chat to confirm a reply. */
export type Moment = "thinking" | "replying";

export interface Demo extends AsyncDisposable {
  readonly chat: FakeChat;
  readonly service: ServiceProcess;
  /** Runs `act`, waits until kit reaches the moment, and kills kit. */
  killWhile(moment: Moment, act: () => Promise<unknown>): Promise<void>;
}

/** Starts a chat, a model and kit between them: three servers with each other's addresses. */
export async function openDemo(): Promise<Demo> {
  const interruptions = new Map<Moment, () => Promise<void>>();
  const reach = async (moment: Moment): Promise<void> => {
    const interrupt = interruptions.get(moment);
    interruptions.delete(moment);
    await interrupt?.();
  };
  await using opened = new AsyncDisposableStack();
  const chat = opened.use(await startFakeChat({ beforeConfirming: () => reach("replying") }));
  const model = opened.use(await startScriptedModel({ beforeAnswering: () => reach("thinking") }));
  const service = opened.use(
    await startService({
      CHAT_URL: chat.url,
      CHAT_SECRET: chat.secret,
      CHAT_TOKEN: chat.token,
      MODEL_URL: model.url,
    }),
  );
  chat.subscribe(`${service.url}/webhooks/chat`);
  const closing = opened.move();
  return {
    chat,
    service,
    async killWhile(moment, act) {
      const begun = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      interruptions.set(moment, () => {
        begun.resolve();
        return goOn.promise;
      });
      await act();
      await begun.promise;
      await service.kill();
      goOn.resolve();
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
