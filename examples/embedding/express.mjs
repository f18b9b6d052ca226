// kit in an Express application: `handle` gets Node's request and response. Mount it before middleware that reads bodies.
import express from "express";
import { openKit } from "./kit.mjs";

export const kit = await openKit();
export const app = express();

app.use("/kit", kit.server.handle);
app.use(express.json());
app.get("/", (_, response) => response.send("The shop."));
