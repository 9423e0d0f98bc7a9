// Target: config files. Each text is put in place of that of a running gateway, now and then also to `config check` and to a
// start. It is applied, or refused in sentences; the gateway serves on, and takes the good file afterwards.

import { rename, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { request } from 'undici'
import { product } from '../../test/support/process.ts'
import { demand, demandInTime } from '../fault.ts'
import { patienceMs } from '../http/conversation.ts'
import { runLimited } from '../system/run-limited.ts'
import { batchesOf, type Target, weighted } from '../target.ts'
import { type ConfigText, configTexts } from './config-texts.ts'

type ConfigCase = ConfigText & { readonly also: 'check' | 'start' | undefined }
type Counts = Readonly<Record<string, number>>

const goodText = 'log: {level: info}\n'
const maxLines = 101
const taken = ['applied', 'unchanged']
const everyOutcome = [...taken, 'refused']

const also = weighted<ConfigCase['also']>(
  [92, fc.constant(undefined)],
  [8, fc.constantFrom('check', 'check', 'start')],
)
const cases = fc.tuple(configTexts, also).map(([text, also]): ConfigCase => ({ ...text, also }))

const checkSentences = (text: string): void => {
  demand(!/\bat .*\.ts:\d+/.test(text), 'a refusal has a stack', text)
  const lines = text.trimEnd().split('\n')
  demand(lines.length <= maxLines, 'a refusal has too many lines', lines.length)
  for (const line of lines)
    demand(line.length >= 10 && line.length <= 2_500, 'a refusal has a line that is no sentence', line)
}

export const configuration: Target<ConfigCase> = {
  name: 'configuration',
  share: 3,
  checks: 'a file is applied or refused in sentences; the check agrees; the gateway keeps serving',
  batches: batchesOf(cases, 20),
  atOnce: 1,
  setting: { configText: goodText, env: { ABOHAWA_TEST_CONFIG__POLL_EVERY: '20ms' } },
  kindOf: ({ kind }) => kind,
  print: ({ kind, also, bytes }) => `${kind} ${also ?? ''} (${bytes.length}): ${bytes.toString('latin1')}`,
  open: async system => {
    const file = system.configFile
    const fetchText = async (path: string): Promise<string> => {
      const { body } = await request(system.gateway().opsUrl + path, {
        signal: AbortSignal.timeout(patienceMs),
      })
      return body.text()
    }
    const counter = /^abohawa_config_reloads_total{outcome="(\w+)"} (\d+)/gm
    const outcomes = async (): Promise<Counts> => {
      const found = (await fetchText('/metrics')).matchAll(counter)
      return Object.fromEntries([...found].map(([, outcome, count]) => [outcome, Number(count)]))
    }
    /** The next outcome among some; undefined when there was none in time. */
    const outcomeAfter = async (before: Counts, among: readonly string[]): Promise<string | undefined> => {
      for (const started = performance.now(); performance.now() - started < patienceMs; await pause(2)) {
        const after = await outcomes()
        const outcome = among.find(name => after[name] !== (before[name] ?? 0))
        if (outcome !== undefined) return outcome
      }
      return undefined
    }
    const give = async (bytes: Buffer | string, among = everyOutcome): Promise<string | undefined> => {
      const before = await outcomes()
      // In one step: a half of it would have its own outcome.
      await writeFile(`${file}.new`, bytes)
      await rename(`${file}.new`, file)
      return outcomeAfter(before, among)
    }
    /** What a separate process makes of the file. */
    const checkProcess = async (
      also: 'check' | 'start',
      outcome: string | undefined,
      before: Counts,
    ): Promise<void> => {
      const args = [product, ...(also === 'check' ? ['config', 'check'] : ['serve'])]
      const ended = await runLimited(args, system.env, patienceMs, '"listener":"api"')
      const { stderr, code } = ended
      demandInTime(!ended.isLate, `a ${also} does not end`, stderr)
      const isForeseen = code === 0 || code === 1
      demand(isForeseen, `a ${also} fails in another way than with a sentence`, `${code}: ${stderr}`)
      if (also === 'check') {
        // A file that was replaced while it was read is read once more, so the first outcome may be that of the text before.
        const isRefused =
          outcome === 'refused' || (code === 1 && (await outcomeAfter(before, ['refused'])) === 'refused')
        demand(isRefused === (code === 1), 'a running gateway and the check disagree', stderr)
      }
      if (code === 1) checkSentences(stderr)
    }

    // The gateway reads its file once after its start. Until then an outcome could be that of this reading.
    await outcomeAfter({}, everyOutcome)
    return {
      run: async ({ bytes, also }) => {
        try {
          const before = await outcomes()
          const outcome = await give(bytes)
          demandInTime(outcome, 'a changed configuration has no outcome', `${bytes.length} bytes`)
          if (outcome === 'refused') {
            const { detail } = JSON.parse(await fetchText('/readyz')) as { detail: { configuration: string } }
            checkSentences(detail.configuration)
          }
          if (also) await checkProcess(also, outcome, before)
        } finally {
          // Until then the gateway reads a refused text again, now and then, and counts each reading.
          const isTaken = (await give(goodText, taken)) !== undefined
          demand(isTaken, 'the good configuration is not taken')
        }
      },
    }
  },
}
