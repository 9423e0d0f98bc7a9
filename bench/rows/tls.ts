// TLS 1.3 where users feel it: kept connections, and a new one for each request with a full handshake or a resumed session. The
// servers of one URL, with the certificate of the tests.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { localCertificate } from '../../test/support/http2-client.ts'
import { checked, compare, type Measured, measureInRounds, type Send, tableOf } from '../rounds.ts'
import type { Row } from '../row.ts'
import { loadCores, onCores, outputOf } from '../tools/processes.ts'
import { openWorld, type World } from '../tools/world.ts'
import { type Loaded, load, type Workload } from '../tools/wrk.ts'
import { certificateEnv } from './http2.ts'
import { besides, onBothStores } from './one.ts'

const kinds = {
  kept: 'kept',
  full: 'full handshake',
  resumed: 'resumed',
} as const
type Kind = keyof typeof kinds

/** What the process of tls-callers.ts reads. */
export type Handshakes = Workload & {
  readonly kind: Kind
  readonly seconds: number
  /** The authority of the server's certificate, in PEM. */
  readonly caFile: string
  /** Any of these is a right body: that of a gateway changes with the quarter-hour, that of a plain server does not. */
  readonly bodyFiles: readonly string[]
}

const script = new URL('tls-callers.ts', import.meta.url).pathname

/** wrk keeps connections and does not resume. */
const senderOf = (kind: Kind, world: World): Send => {
  if (kind === 'kept') return load
  return async (folder, workload, seconds) => {
    const [now, file] = [join(folder, 'body-now.json'), join(folder, 'handshakes.json')]
    await writeFile(now, (await world.reference()).body)
    const bodyFiles = [world.bodyFile, now]
    const given: Handshakes = { ...workload, kind, seconds, caFile: localCertificate.cert, bodyFiles }
    await writeFile(file, JSON.stringify(given))
    return JSON.parse(await outputOf(...onCores(loadCores, process.execPath, [script, file]))) as Loaded
  }
}

export const tls: Row = {
  id: 'tls',
  what: 'TLS on kept connections, with full handshakes and with resumed sessions',
  run: async (scope, options, progress) => {
    const world = await openWorld(scope)
    const subjects = [...besides(world, {}, localCertificate), ...onBothStores(world, {}, certificateEnv)]
    const all: [Kind, Measured[]][] = []
    for (const kind of ['kept', 'full', 'resumed'] as const) {
      const named = subjects.map(one => ({ ...one, name: `${one.name}, ${kinds[kind]}` }))
      const show = (text: string): void => progress(`${kind}, ${text}`)
      const send = senderOf(kind, world)
      // Handshakes are too few to warm what each request runs.
      const warmWith = kind === 'kept' ? [send] : [load, send]
      all.push([kind, await measureInRounds(world, named, options, show, send, warmWith)])
    }
    return {
      findings: [
        ...all.flatMap(([kind, measured]) =>
          (['embedded', 'redis'] as const).map(id =>
            compare(
              measured,
              `${kinds[kind]}, ${id === 'redis' ? 'Redis' : 'embedded'}, vs raw node:https`,
              kind === 'kept'
                ? [id, 'raw', 'cpu', '≥', id === 'redis' ? 0.75 : 0.8]
                : [id, 'raw', 'cpu', '≤', 1.15],
            ),
          ),
        ),
        checked(all.flatMap(([, measured]) => measured)),
      ],
      table: tableOf(all.flatMap(([, measured]) => measured)),
    }
  },
}
