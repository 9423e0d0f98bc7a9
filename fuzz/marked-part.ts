// The measured part of a page: what stands between two markers, `<!-- fuzz: begin -->` and its end. Rewrites that and nothing else.
// Also says on which machine it was measured.

import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { UsageError } from './command-line.ts'

/** The page, and where its measured part begins and ends. @throws UsageError when it lacks the markers */
export const readMarkedPart = async (
  file: string,
  name: string,
): Promise<{ page: string; from: number; to: number }> => {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`]
  const page = await readFile(file, 'utf8').catch(() => '')
  const [from, to] = [page.indexOf(begin) + begin.length, page.indexOf(end)]
  if (!page.includes(begin) || to < from)
    throw new UsageError(`--report must be a page with ${begin} and ${end}, got ${JSON.stringify(file)}`)
  return { page, from, to }
}

/** @throws UsageError as `readMarkedPart` does */
export const writeMarkedPart = async (file: string, name: string, text: string): Promise<void> => {
  const { page, from, to } = await readMarkedPart(file, name)
  await writeFile(file, `${page.slice(0, from)}\n${text}\n${page.slice(to)}`)
}

/** The day, the seed and the machine, as lines of a list. */
export const measuredWith = (seed: string): string => {
  const redis = spawnSync('redis-server', ['--version']).stdout?.toString() ?? ''
  return `- ${new Date().toISOString().slice(0, 10)}, ${seed}
- Node ${process.version}, Redis ${/v=(\S+)/.exec(redis)?.[1] ?? 'not found'}, Linux (${process.arch}), ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`
}
