// TLS 1.3 where users feel it: kept connections, and a new one for each request with a full handshake or a resumed session. The
// same servers as in the row of hits, with the certificate of the tests.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Env } from '../../test/scenarios/set-up.ts'
import { count, type Finding, notMeasured, type Row, sum } from '../row.ts'
import type { Absent, CertificateFiles, Contender, World } from './contender.ts'
import { startVariants, type Variant } from './gateways.ts'
import { checked, type Judge, judgeOf, quietness } from './judge.ts'
import { connections, type Handshakes, loader } from './load.ts'
import { meteredNginx, openNginx } from './nginx.ts'
import { startBareFastify, startRaw } from './others.ts'
import { type Measured, measureInRounds } from './rounds.ts'
import { columnsOfRounds, cpuBars, tableOfRounds } from './rounds-form.ts'
import { openWorld } from './world.ts'

const fixture = (name: string): string => new URL(`../../test/fixtures/${name}`, import.meta.url).pathname
const files: CertificateFiles = { cert: fixture('localhost.crt'), key: fixture('localhost.key') }

const variants: readonly Variant[] = [
  { id: 'embedded', name: 'Abohawa, embedded store', server: 'embedded' },
  { id: 'redis', name: 'Abohawa, Redis, 1 key', server: 'redis' },
]

const kinds = {
  kept: 'kept connections',
  full: 'a new connection for each request, full handshake',
  resumed: 'a new connection for each request, resumed',
} as const
type Kind = keyof typeof kinds
const isKind = (text: string): text is Kind => text in kinds

const keptBar = 0.75
const handshakeBar = 1.2

/** The same contender, whose callers connect in this way. */
const connecting = (kind: Kind, one: Contender, world: World): Contender => ({
  ...one,
  id: `tls-${kind}-${one.id}`,
  name: `${one.name}, ${kinds[kind]}`,
  workload: async () => {
    const workload = await one.workload()
    if (kind === 'kept') return workload
    const handshakes: Handshakes = { kind, caFile: files.cert, bodyFile: await bodyFileOf(one, world) }
    return { ...workload, handshakes }
  },
})

/** The body that the contender sends now: that of a gateway changes with the quarter-hour. */
const bodyFileOf = async ({ id }: Contender, { folder, bodyFile, reference }: World): Promise<string> => {
  if (variants.every(variant => variant.id !== id)) return bodyFile
  const file = join(folder, 'body-now.json')
  await writeFile(file, (await reference()).body)
  return file
}

export const tls: Row = {
  id: 'tls',
  parts: Object.keys(kinds).map(kind => `tls-${kind}`),
  method:
    `TLS 1.3 with a key on P-256. \`tls-kept\`: as in \`hits\`. \`tls-full\` and \`tls-resumed\`: 16 callers open the next ` +
    'connection when a response has ended, and resume the session of their last one or do not. Each response is compared ' +
    'byte by byte, and each connection says whether it was resumed.',
  run: async (scope, progress, { settings: { rounds = 5, seconds = 3 }, parts }) => {
    progress('starts everything')
    const world = await openWorld(scope)
    const certificate: Env = {
      ABOHAWA_SERVER__TLS__CERT: files.cert,
      ABOHAWA_SERVER__TLS__KEY: files.key,
    }
    const servers = [
      await startRaw(scope, world, files),
      await startBareFastify(scope, world, files),
      ...(await startVariants(scope, world, variants, {
        embedded: { ...certificate, ABOHAWA_STORE__PATH: join(world.folder, 'tls.db') },
        redis: { ...certificate, ABOHAWA_REDIS__URL: world.redisUrl ?? '' },
      })),
      await startTlsNginx(scope, world),
    ]
    const present = servers.filter((one): one is Contender => !('absent' in one))
    const wanted = parts.map(part => part.replace('tls-', '')).filter(isKind)
    const contenders = wanted.flatMap(kind => present.map(one => connecting(kind, one, world)))
    const measured = await measureInRounds(world, contenders, { rounds, seconds }, progress)
    const judge = judgeOf(measured)
    return {
      findings: [
        ...wanted.flatMap(kind => variants.flatMap(({ id }) => findingOf(judge, kind, id))),
        ...resumptions(measured),
        ...servers
          .filter((one): one is Absent => 'absent' in one)
          .map(({ name, absent }) => notMeasured(name, absent)),
        checked(measured),
      ],
      table: tableOfRounds(measured, judge.of(`tls-${wanted[0]}-raw`)),
      notes: [
        `Load on kept connections, ${connections} of them, from ${loader}; on new ones from a loader of our own, because wrk does ` +
          `not resume. It needs more processor time for a connection than the servers do, so that they wait for it. ` +
          `Rounds: ${rounds} of ${seconds} s for each row, each of a process of its own that is warm.`,
        quietness(measured),
        ...columnsOfRounds,
      ],
      drawings: cpuBars('performance-tls.svg', 'a request over TLS', measured),
    }
  },
}

const startTlsNginx = async (
  scope: Parameters<typeof openNginx>[0],
  world: World,
): Promise<Contender | Absent> => {
  const about = { id: 'nginx', name: 'nginx + Lua + Redis at the same guarantees' }
  const keys = ['nginx-key-of-the-bench']
  const origin = { url: world.originUrl, key: '' }
  const nginx = await openNginx(scope, world, { keys, origin, name: 'nginx', tls: files })
  if (typeof nginx === 'string') return { ...about, absent: nginx }
  return { ...about, ...meteredNginx(nginx, keys, async () => world.body) }
}

const findingOf = (judge: Judge, kind: Kind, id: string): Finding[] => {
  const ids = [`tls-${kind}-${id}`, `tls-${kind}-raw`] as const
  const what = `${kinds[kind]}, ${id === 'redis' ? 'Redis' : 'embedded store'}, of raw node:https`
  return kind === 'kept' ? judge.byCpu(...ids, keptBar, what) : judge.byCost(...ids, handshakeBar, what)
}

const resumptions = (measured: readonly Measured[]): Finding[] => {
  const those = measured.filter(({ contender }) => contender.id.startsWith('tls-resumed-'))
  if (those.length === 0) return []
  const [resumed, answers] = [sum(those.map(one => one.resumed)), sum(those.map(one => one.answers))]
  return [
    {
      what: 'connections that resumed a session, of those that should',
      bar: 'all',
      measured: `${count(resumed)} of ${count(answers)}`,
      met: resumed === answers,
      figures: { resumed, answers },
    },
  ]
}
