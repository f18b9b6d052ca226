import { KitError } from "../../base/kit-error.ts";
import type { MachineInfo, MachineSpec, RemoteDriver, RemoteMachine } from "../remote/driver.ts";
import { remoteError } from "../remote/remote-error.ts";
import { reasonFor, toRemote, vendor } from "./modal-error.ts";
import { runOnModal } from "./modal-run.ts";
import {
  type ModalApp,
  type ModalClient,
  type ModalCreation,
  type ModalImage,
  type ModalMachine,
  type ModalOptions,
  openModal,
} from "./modal-sdk.ts";

/** The longest life that the vendor gives a machine. */
const mostLifeMs = 24 * 3_600_000;

interface Account {
  readonly client: ModalClient;
  readonly app: ModalApp;
  readonly image: ModalImage;
}

/** The primitives of Modal, which cannot pause. `root`: the project whose package of the vendor is taken. */
export function createModalDriver(options: ModalOptions, root: string): RemoteDriver {
  const open = async (): Promise<Account> => {
    const client = await openModal(options, root);
    const app = await client.apps.fromName(options.app ?? "kit", { createIfMissing: true });
    return { client, app, image: client.images.fromRegistry(options.image ?? "debian:12") };
  };
  let opening: Promise<Account> | undefined;
  const asking = async <Value>(work: (account: Account) => Promise<Value>): Promise<Value> => {
    opening ??= open();
    const current = opening;
    current.catch(() => {
      if (opening === current) opening = undefined;
    });
    try {
      return await work(await current);
    } catch (error) {
      throw error instanceof KitError ? error : toRemote(error);
    }
  };
  return {
    name: vendor,
    folder: options.folder ?? "/home/user/workspace",
    network: "hosts",
    create: (spec) =>
      asking(async ({ client, app, image }) => {
        try {
          return toMachine(await client.sandboxes.create(app, image, creationOf(spec)));
        } catch (error) {
          // A 404 here means that an environment or an image is missing.
          throw toRemote(error, reasonFor(error) === "gone" ? "refused" : reasonFor(error));
        }
      }),
    attach: (id) =>
      asking(async ({ client }) => {
        const machine = await client.sandboxes.fromId(id);
        if ((await machine.poll()) !== null) throw remoteError(vendor, "gone");
        return toMachine(machine);
      }),
    destroy: (id) =>
      asking(async ({ client }) => {
        try {
          await (await client.sandboxes.fromId(id)).terminate();
        } catch (error) {
          if (reasonFor(error) !== "gone") throw error;
        }
      }),
    list: (labels) =>
      asking(async ({ client, app }) => {
        const machines: ModalMachine[] = [];
        for await (const machine of client.sandboxes.list({ appId: app.appId, tags: toTags(labels) }))
          machines.push(machine);
        const found = await Promise.all(machines.map(infoOf));
        // The vendor's filter is not taken on trust where machines are removed by it.
        return found
          .filter((info) => info !== undefined)
          .filter((info) => Object.entries(labels).every(([name, value]) => info.labels[name] === value));
      }),
  };
}

function creationOf({ labels, env, network, aliveMs }: MachineSpec): ModalCreation {
  const rules =
    network === undefined
      ? {}
      : network.length === 0
        ? { blockNetwork: true }
        : { outboundDomainAllowlist: [...network] };
  return {
    timeoutMs: mostLifeMs,
    // Whole seconds.
    idleTimeoutMs: Math.min(Math.ceil(aliveMs / 1_000) * 1_000, mostLifeMs),
    env: { ...env },
    tags: toTags(labels),
    ...rules,
  };
}

/** Undefined of a machine that has ended meanwhile. */
async function infoOf(machine: ModalMachine): Promise<MachineInfo | undefined> {
  try {
    return { id: machine.sandboxId, state: "running", labels: toLabels(await machine.getTags()) };
  } catch (error) {
    if (reasonFor(error) === "gone") return undefined;
    throw error;
  }
}

function toMachine(machine: ModalMachine): RemoteMachine {
  return {
    id: machine.sandboxId,
    run: (request) => runOnModal(machine, request),
    // Every script does that by itself; nothing else can.
    keepAlive: async () => undefined,
  };
}

const most = 63;
const plain = /^[A-Za-z0-9._-]{1,63}$/;
const mark = "b64.";
const partName = /^(.+)\.(\d+)$/;

/**
 * Labels as Modal's tags, whose values have at most 63 letters, digits, dots, dashes and underscores: any other value
 * stands in base64url, in as many tags as it needs (`kit_instance`, `kit_instance.1`, ...).
 */
export function toTags(labels: Readonly<Record<string, string>>): Record<string, string> {
  const tags: Record<string, string> = {};
  for (const [name, value] of Object.entries(labels)) {
    const text =
      plain.test(value) && !value.startsWith(mark)
        ? value
        : `${mark}${Buffer.from(value).toString("base64url")}`;
    for (let part = 0; part * most < text.length; part += 1)
      tags[part === 0 ? name : `${name}.${part}`] = text.slice(part * most, (part + 1) * most);
  }
  return tags;
}

/** The labels that tags were made of. */
export function toLabels(tags: Readonly<Record<string, string>>): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [name, first] of Object.entries(tags)) {
    if (partName.test(name)) continue;
    let text = first;
    for (let part = 1; tags[`${name}.${part}`] !== undefined; part += 1) text += tags[`${name}.${part}`];
    labels[name] = text.startsWith(mark)
      ? Buffer.from(text.slice(mark.length), "base64url").toString()
      : text;
  }
  return labels;
}
