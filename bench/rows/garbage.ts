// What an answer of the mix allocates on V8's heap, by its sampling heap profiler, and in which files: garbage is collected on the
// core that answers. The gateway is beside the plain servers; all run with Node's inspector on a free port of the loopback.

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createKey } from '../../src/keys/key-form.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { checked, measureInRounds, type Send, type Subject } from '../rounds.ts'
import { count, found, judged, median, type Row, rangeOf, sum } from '../row.ts'
import { mixKeys } from '../tools/mix.ts'
import { load } from '../tools/wrk.ts'
import { ours, readySubjects, setUp } from './mix.ts'

const boundBytes = 8_000
const filesShown = 8
// The starter of the product turns off the signal that opens an inspector, but not this.
const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }
const sampling = {
  samplingInterval: 65_536,
  includeObjectsCollectedByMajorGC: true,
  includeObjectsCollectedByMinorGC: true,
}

/** A function with what it allocated itself, and those that it called. */
type Node = { callFrame: { url: string }; selfSize: number; children: Node[] }

/** Speaks the DevTools protocol with a process whose standard error, a file, has the address. One call at a time. */
const openInspector = async (scope: Teardown, pid: number) => {
  const [url = ''] = /ws:\/\/\S+/.exec(await readFile(`/proc/${pid}/fd/2`, 'utf8')) ?? []
  const socket = new WebSocket(url)
  // Else the process would wait for that before it ends.
  scope.teardown(() => socket.close())
  await once(socket, 'open')
  return async (method: string, params = {}): Promise<{ profile: { head: Node } }> => {
    const answered = once(socket, 'message')
    socket.send(JSON.stringify({ id: 1, method, params }))
    const { result, error } = JSON.parse((await answered)[0].data)
    if (!result) throw new Error(`${method}: ${error.message}`)
    return result
  }
}

const home = `file://${resolve(import.meta.dirname, '../..')}/`

/** Ours by its path, a package by its name, a module of Node as `node:…`; the rest is V8's own. */
const fileOf = (url: string): string =>
  /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? (url.replace(home, '') || 'built into V8')

/** Bytes an answer. */
type Bytes = readonly [file: string, bytes: number]

const bytesOf = ({ callFrame, selfSize, children }: Node, answers: number): Bytes[] => [
  [fileOf(callFrame.url), selfSize / answers],
  ...children.flatMap(child => bytesOf(child, answers)),
]
const total = (some: readonly Bytes[]): number => sum(some.map(([, bytes]) => bytes))

export const garbage: Row = {
  id: 'garbage',
  what: 'what an answer of the mix allocates, beside node:http and Fastify',
  run: async (scope, options, progress) => {
    const { world, mix } = await setUp(scope, inspected)
    const keys = Array.from({ length: mixKeys }, () => createKey())
    const samples: { id: string; bytes: Bytes[] }[] = []
    let send: Send = load
    const sampled = (subject: Subject): Subject => ({
      ...subject,
      start: async own => {
        const running = await subject.start(own)
        const call = await openInspector(own, running.pid)
        // The first load warms, without the profiler.
        send = async (...warming) => {
          send = async (...given) => {
            await call('HeapProfiler.startSampling', sampling)
            const loaded = await load(...given)
            const { profile } = await call('HeapProfiler.stopSampling')
            samples.push({ id: subject.id, bytes: bytesOf(profile.head, loaded.answers) })
            return loaded
          }
          return load(...warming)
        }
        return running
      },
    })
    const subjects = [...(await readySubjects(world, mix, keys)), ours(world, mix, 'garbage:')].map(sampled)
    const measured = await measureInRounds(world, subjects, options, progress, (...given) => send(...given))

    const eachOf = (id: string): Bytes[][] => samples.filter(one => one.id === id).map(({ bytes }) => bytes)
    const text = (id: string): string => `${rangeOf(eachOf(id).map(total), 0)} bytes`
    const ofOurs = eachOf('abohawa')
    const all = total(ofOurs.flat())
    const lines = [...Map.groupBy(ofOurs.flat(), ([file]) => file)]
      .map(([file, parts]) => [file, total(parts)] as const)
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, filesShown)
      .map(([file, bytes]) => [file, count(bytes / ofOurs.length), `${((bytes / all) * 100).toFixed(1)} %`])
    const isMet = median(ofOurs.map(total)) <= boundBytes
    const what = 'bytes an answer allocates, Redis, log'
    return {
      findings: [
        judged(what, `≤ ${boundBytes / 1000} kB`, isMet, text('abohawa'), ofOurs.map(total)),
        found('raw node:http', text('raw')),
        found('bare Fastify', text('fastify')),
        checked(measured),
      ],
      table: { head: ['file', 'bytes an answer', 'share'], lines },
    }
  },
}
