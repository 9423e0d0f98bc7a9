// Without it the page of limits could name another number than the code, where no test meets the number itself.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { maxFileBytes } from '../../src/common/regular-file.ts'

const root = join(import.meta.dirname, '..', '..')
const rows = readFileSync(join(root, 'docs/operating/limits.md'), 'utf8').split('\n')

/** The beginning of a row, what it says, and the constants behind it with their values. */
const stated: [row: string, says: string, file: string, constants: Record<string, number>][] = [
  ['Requests without a good key on a', '| 100 |', 'api/connection/connections', { maxRefusals: 100 }],
  ['Requests for `/docs`', '300 a minute', 'api/reference-routes', { requestsPerMinute: 300 }],
  ['Time without progress while', '| 120 s |', 'api/server', { stalledMs: 120_000 }],
  ['Body of a request, or', '2 s', 'common/closing', { sendOnMs: 2_000 }],
  [
    'Time without progress of a response',
    '| 30 s;',
    'operate/listener/listeners',
    { answerWithinMs: 30_000 },
  ],
  ['Idle time of a connection (both)', '| 5 s |', 'operate/listener/server', { idleForMs: 5_000 }],
  ['Body of a request (ops)', '| 4 KiB;', 'operate/listener/request-input', { longestBodyBytes: 4_096 }],
  ['Keys of one `GET /keys`', '| 1,000 |', 'operate/listener/key-routes', { most: 1_000 }],
  ['Restrictions of a key', '50 origins', 'stores/records', { maxRestricted: 50 }],
  ['Restrictions of a key', '4,000 characters', 'stores/records', { longestRestrictions: 4_000 }],
  ['Keys created by one command', '10,000 with `--count`', 'cli/keys/key-create', { maxKeys: 10_000 }],
  ['Keys created by one', '100,000 and 32 MiB with `--from`', 'cli/keys/key-file', { maxRows: 100_000 }],
  ['Keys whose loads are counted', '10,000 a UTC day', 'keys/loads-by-key', { maxKeys: 10_000 }],
  ['Time for a stopping gateway', '| 3 s |', 'keys/meter', { reportForMs: 3_000 }],
  ['Change record', '1,000 of a kind', 'stores/records', { maxChangeRecords: 1_000 }],
  ['Text in a log line', '50 entries of a list or object, ', 'telemetry/log', { maxEntries: 50 }],
  ['Text in a log line', ', 5 levels', 'telemetry/log', { maxLevels: 5 }],
  ['Log lines about refused', '60 a minute', 'telemetry/observers', { linesOfKeysPerMinute: 60 }],
  ['Log lines waiting', '64 MiB', 'telemetry/log', { maxBytes: 64 * 1024 * 1024 }],
]

const valueIn = (file: string, constant: string): number => {
  const text = readFileSync(join(root, 'src', `${file}.ts`), 'utf8')
  const [, factors = ''] = new RegExp(`^(?:export )?const ${constant} = ([\\d_.* ]+)$`, 'm').exec(text) ?? []
  return factors
    .split('*')
    .reduce((product, factor) => product * Number.parseFloat(factor.replaceAll('_', '')), 1)
}

t.test('a file may be as long as the page says of its kind', async t => {
  const { config, pem, result, data } = maxFileBytes
  const kinds = '| PEM file; load test result; file of new keys;'
  const row = rows.find(row => row.startsWith(kinds)) ?? ''
  const sizes = [pem, result, valueIn('cli/keys/key-file', 'maxBytes'), data]
  t.equal(row.split(' | ')[1], sizes.map(bytes => `${bytes / 1024 ** 2} MiB`).join('; '))
  const ofConfig = rows.find(row => row.startsWith('| Config, secret or token file')) ?? ''
  t.ok(ofConfig.includes(` | ${config / 1024} KiB; `), ofConfig)
})

for (const [begins, says, file, constants] of stated)
  t.test(`${begins}: ${says}`, async t => {
    const found = rows.filter(row => row.startsWith(`| ${begins}`))
    t.equal(found.length, 1)
    t.ok(found[0]?.includes(says), found[0] ?? 'no such row')
    for (const [constant, value] of Object.entries(constants))
      t.equal(valueIn(file, constant), value, constant)
  })
