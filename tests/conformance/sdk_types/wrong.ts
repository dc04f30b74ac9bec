// SPDX-License-Identifier: Apache-2.0
// Mistakes that the types must notice.
import { Coffer } from "cofferdam";

const coffer = await Coffer.local();
await coffer.call(1); // MISTAKE
await coffer.call("python", { code: "1" }, { limit: { memory: "1" } }); // MISTAKE
const text: string = (await coffer.call("python")).exitCode; // MISTAKE
if ((await coffer.call("python")).outcome === "sucess") console.log(text); // MISTAKE
coffer.call("python").stdout; // MISTAKE
const session = await coffer.newSession();
await (await session.start("bash")).signal("KILL"); // MISTAKE
