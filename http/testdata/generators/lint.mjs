// Prints what two linters find in an OpenAPI document, a line each, and nothing when it is right.
import { readFile } from "node:fs/promises";
import { createConfig, lint } from "@redocly/openapi-core";
import spectral from "@stoplight/spectral-core";
import rulesets from "@stoplight/spectral-rulesets";

const description = process.argv[2];

// The API is for servers on networks of their own, so an address of the own host is no fault.
const config = await createConfig({ extends: ["recommended-strict"], rules: { "no-server-example.com": "off" } });
for (const problem of await lint({ ref: description, config })) {
  console.log("redocly", problem.ruleId, problem.location[0]?.pointer, problem.message);
}

const linter = new spectral.Spectral();
linter.setRuleset({ extends: [[rulesets.oas, "all"]], rules: { "contact-properties": "off" } }); // no e-mail address
for (const problem of await linter.run(await readFile(description, "utf8"))) {
  console.log("spectral", problem.code, problem.path.join("/"), problem.message);
}
