// Works on 40 units, reports progress, and continues from the checkpoint of an earlier attempt.
// Without shed it does the same work from the start.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const units = 40;
const { SHED_PROGRESS_FILE: progressFile, SHED_RESUME_FILE: resumeFile = "/dev/null", STEP = "1" } = process.env;
const checkpoint = `${resumeFile}.checkpoint`;
const first = existsSync(checkpoint) ? Number(readFileSync(checkpoint, "utf8")) : 0;
console.log(`begins at unit ${first}`);
for (let unit = first; unit < units; unit++) {
  await setTimeout(1000 * Number(STEP)); // the work on one unit
  if (!progressFile) continue;
  const report = { progress: `${unit + 1}/${units}`, checkpoint: `${unit + 1}` };
  writeFileSync(`${progressFile}.new`, JSON.stringify(report));
  renameSync(`${progressFile}.new`, progressFile);
}
