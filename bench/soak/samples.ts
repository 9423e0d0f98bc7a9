// What a gateway holds while it serves for hours, read every ten seconds: memory, handles, descriptors, the delay of its event
// loop, and what its store takes. Also the slope of each, as growth in an hour.

import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Redis } from 'ioredis'
import type { Scope } from '../../test/scenarios/set-up.ts'
import { median } from '../row.ts'

const everyMs = 10_000
const mib = 2 ** 20

/** The names of all that is read, and the unit of each. */
export const read = {
  resident: 'MiB',
  heap: 'MiB',
  handles: '',
  descriptors: '',
  delay: 'ms, p99',
  store: 'MiB',
} as const

export type Name = keyof typeof read
/** @property seconds since the begin */
export type Sample = { readonly seconds: number } & Readonly<Record<Name, number>>

const valueIn = (metrics: string, name: string): number =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics)?.[1] ?? Number.NaN)

/** Of a store: its bytes in a file with what stands beside it, or in Redis. */
export const bytesOfFile = (file: string) => async (): Promise<number> => {
  const names = await readdir(dirname(file))
  const sizes = await Promise.all(
    names
      .filter(name => name.startsWith(basename(file)))
      .map(async name => (await stat(join(dirname(file), name)).catch(() => ({ size: 0 }))).size),
  )
  return sizes.reduce((total, size) => total + size, 0)
}
export const bytesOfRedis = (scope: Scope, url: string) => {
  const redis = new Redis(url)
  scope.teardown(() => redis.disconnect())
  return async (): Promise<number> =>
    Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1] ?? Number.NaN)
}

/** Reads until the function returned is called, which gives all samples. */
export const beginSamples = (opsUrl: string, storeBytes: () => Promise<number>): (() => Sample[]) => {
  const begun = performance.now()
  const samples: Sample[] = []
  const sample = async (): Promise<void> => {
    const response = await fetch(`${opsUrl}/metrics`)
    const metrics = await response.text()
    samples.push({
      seconds: (performance.now() - begun) / 1_000,
      resident: valueIn(metrics, 'process_resident_memory_bytes') / mib,
      heap: valueIn(metrics, 'nodejs_heap_size_used_bytes') / mib,
      handles: valueIn(metrics, 'nodejs_active_resources_total'),
      descriptors: valueIn(metrics, 'process_open_fds'),
      delay: valueIn(metrics, 'nodejs_eventloop_lag_p99_seconds') * 1_000,
      store: (await storeBytes()) / mib,
    })
  }
  // One that fails, while Redis answers nothing, is left out.
  const timer = setInterval(() => void sample().catch(() => {}), everyMs)
  return () => {
    clearInterval(timer)
    return samples
  }
}

/** Growth in an hour over the second half, by the median of the slopes of all pairs, which a single high reading does not move. */
export const growthAnHour = (samples: readonly Sample[], name: Name): number => {
  const half = samples.slice(Math.floor(samples.length / 2))
  const slopes = half.flatMap((a, i) =>
    half.slice(i + 1).map(b => (b[name] - a[name]) / ((b.seconds - a.seconds) / 3_600)),
  )
  return median(slopes)
}
