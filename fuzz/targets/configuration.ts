// Target: config files. Each text is put in place of that of a running gateway, now and then also to `config check` and to a
// start. It is applied, or refused in sentences; the gateway serves on, and takes the good file afterwards.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rename, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { request } from 'undici'
import { cleanEnv, product } from '../../test/support/process.ts'
import { type Finding, finding, slowness } from '../finding.ts'
import type { Random } from '../random.ts'
import { underMemoryLimit } from '../system/memory-limit.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { type ConfigText, makeConfigText } from './config-texts.ts'

type ConfigCase = ConfigText & { readonly also: 'check' | 'start' | undefined }

const goodText = 'log: {level: info}\n'
const appliedWithinMs = 5_000
const checkedWithinMs = 20_000
const maxLines = 101
const taken = ['applied', 'unchanged']
const everyOutcome = [...taken, 'refused']

const generate = (random: Random): ConfigCase => {
  const also = random.chance(0.08) ? random.pick(['check', 'check', 'start'] as const) : undefined
  return { ...makeConfigText(random), also }
}

/** Each half without the other; a shorter text of the same mistake says more. */
function* smaller(given: ConfigCase): Generator<ConfigCase> {
  const half = Math.floor(given.bytes.length / 2)
  if (half > 0) yield { ...given, bytes: given.bytes.subarray(0, half) }
  if (half > 0) yield { ...given, bytes: given.bytes.subarray(half) }
  if (given.also) yield { ...given, also: undefined }
}

const brokenSentences = (text: string): Finding[] => {
  const lines = text.trimEnd().split('\n')
  if (/\n\s+at .*:\d+/.test(text)) return [finding('a refusal has a stack', text)]
  if (lines.length > maxLines) return [finding('a refusal has too many lines', String(lines.length))]
  const wrong = lines.find(line => line.length < 10 || line.length > 2_500)
  return wrong === undefined ? [] : [finding('a refusal has a line that is no sentence', wrong)]
}

const open = async (system: System): Promise<Session<ConfigCase>> => {
  const file = system.configFile ?? ''

  const fetchText = async (path: string): Promise<string> =>
    (
      await request(`${system.gateway().opsUrl}${path}`, { signal: AbortSignal.timeout(appliedWithinMs) })
    ).body.text()
  const outcomes = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      [
        ...(await fetchText('/metrics')).matchAll(/^abohawa_config_reloads_total{outcome="(\w+)"} (\d+)/gm),
      ].map(([, outcome, count]) => [outcome, Number(count)]),
    )

  /** The next outcome among some; undefined when there was none in time. */
  const outcomeAfter = async (
    before: Record<string, number>,
    among: readonly string[],
  ): Promise<string | undefined> => {
    const started = performance.now()
    while (performance.now() - started < appliedWithinMs) {
      const after = await outcomes()
      const outcome = among.find(name => after[name] !== (before[name] ?? 0))
      if (outcome !== undefined) return outcome
      await pause(2)
    }
    return undefined
  }
  /** The outcome of a text; undefined when there was none in time. */
  const give = async (bytes: Buffer | string, among = everyOutcome): Promise<string | undefined> => {
    const before = await outcomes()
    // In one step: a half of it would have an outcome of its own.
    await writeFile(`${file}.new`, bytes)
    await rename(`${file}.new`, file)
    return outcomeAfter(before, among)
  }

  const command = async (args: readonly string[]) => {
    const [name = product, ...rest] = [...underMemoryLimit, product, ...args]
    const child = spawn(name, rest, {
      env: cleanEnv(system.env),
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: checkedWithinMs,
      killSignal: 'SIGKILL',
    })
    let stderr = ''
    child.stderr.on('data', text => {
      stderr += text
    })
    let serves = false
    child.stdout.on('data', text => {
      if (!String(text).includes('"listener":"api"')) return
      serves = true
      child.kill('SIGKILL')
    })
    const [code] = await once(child, 'close')
    return { code: serves ? 0 : (code as number | null), stderr }
  }

  /** What a process of its own makes of the file. */
  const processFindings = async (also: 'check' | 'start', isRefused: boolean): Promise<Finding[]> => {
    const { code, stderr } = await command(also === 'check' ? ['config', 'check'] : ['serve'])
    if (code === null) return [slowness(`a ${also} does not end`, stderr)]
    if (code > 1)
      return [finding(`a ${also} fails in another way than with a sentence`, `${code}: ${stderr}`)]
    if (code === 0 && also === 'check' && isRefused)
      return [finding('a running gateway refuses what the check takes', '')]
    if (code === 1 && !isRefused && also === 'check')
      return [finding('a running gateway takes what the check refuses', stderr)]
    return code === 0 ? [] : brokenSentences(stderr)
  }

  // The gateway reads its file once after its start. Until then an outcome could be that of this reading.
  await outcomeAfter({}, everyOutcome)

  return {
    run: async ({ bytes, also }) => {
      const found: Finding[] = []
      try {
        const outcome = await give(bytes)
        if (outcome === undefined)
          return [slowness('a changed configuration has no outcome', `${bytes.length} bytes`)]
        if (outcome === 'refused') {
          const { detail } = JSON.parse(await fetchText('/readyz')) as { detail: { configuration: string } }
          found.push(...brokenSentences(detail.configuration))
        }
        if (also) found.push(...(await processFindings(also, outcome === 'refused')))
      } finally {
        // Until then the gateway reads a refused text again, now and then, and counts each reading.
        if ((await give(goodText, taken)) === undefined)
          found.push(finding('the good configuration is not taken', ''))
      }
      return found
    },
    close: async () => {},
  }
}

export const configuration: Target<ConfigCase> = {
  name: 'configuration',
  share: 3,
  checks:
    'a config file is applied, or refused in at most 101 sentences without a stack, soon and in bounded memory; the check agrees; the gateway serves on and takes the good file again',
  batch: 20,
  atOnce: 1,
  setting: { configText: goodText, env: { ABOHAWA_TEST_CONFIG__POLL_EVERY: '20ms' } },
  generate,
  shapeOf: ({ kind, change }) => (change === 'as it is' ? kind : `${kind}, ${change}`),
  isAlone: () => false,
  smaller,
  print: ({ kind, change, also, bytes }) =>
    `${kind} ${change} ${also ?? ''} (${bytes.length}): ${bytes.toString('latin1')}`,
  open,
}
