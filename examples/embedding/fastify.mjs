// kit in a Fastify application: in a separate plugin, in which Fastify does not read bodies.
import Fastify from "fastify";
import { openKit } from "./kit.mjs";

export const kit = await openKit();
export const app = Fastify();

app.get("/", async () => "The shop.");
await app.register(async (own) => {
  own.removeAllContentTypeParsers();
  own.addContentTypeParser("*", (_request, _body, done) => done(null));
  own.all("/kit/*", (request, reply) => {
    reply.hijack();
    request.raw.url = request.raw.url.slice("/kit".length);
    kit.server.handle(request.raw, reply.raw);
  });
});
