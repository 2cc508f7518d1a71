// Writes the clients of the three TypeScript generators into ./generated, as their documentation says to.
import { writeFile, mkdir } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { createClient } from "@hey-api/openapi-ts";
import openapiTS, { astToString } from "openapi-typescript";
import { generate } from "orval";

const description = process.argv[2];
await mkdir("generated", { recursive: true });
await writeFile("generated/openapi-typescript.ts", astToString(await openapiTS(pathToFileURL(description))));
await createClient({ input: description, output: "generated/hey-api", logs: { level: "silent" } });
await generate({
  input: description,
  output: { target: "generated/orval.ts", client: "fetch", baseUrl: process.env.BASE },
});
