// Grid cells that were never requested, on a grid of 1/100 degree, so that every case meets an empty cache; their weather is loaded
// by coordinates. The name of a cell's bytes in Redis is found by loading one, so that nothing here depends on how the gateway
// builds names.

import type { Redis } from 'ioredis'
import { get } from '../http/conversation.ts'
import type { Answer } from '../http/response-reader.ts'
import type { GatewayProcess } from '../system/gateway-process.ts'

export type Point = { readonly latitude: number; readonly longitude: number }

export const cellDegrees = 0.01
const [south, west] = [20.05, 87.55]
const [rows, columns] = [690, 540]
const total = rows * columns
// Coprime with the total, so that neighbouring numbers are far apart on the map.
const stride = 100_003

// A Redis keeps cells for longer than a gateway process lives.
const used = new WeakMap<object, number>()

/** So many cells that no other call for this system got. */
export const freshCells = (system: object, count: number): Point[] => {
  const first = used.get(system) ?? 0
  used.set(system, first + count)
  return Array.from({ length: count }, (_, i) => {
    const at = ((first + i) * stride) % total
    return {
      latitude: Number((south + Math.floor(at / columns) * cellDegrees).toFixed(2)),
      longitude: Number((west + (at % columns) * cellDegrees).toFixed(2)),
    }
  })
}

/** The name of a cell in its records. */
export const cellName = ({ latitude, longitude }: Point): string => `${latitude},${longitude}`

/** The weather of cells, asked for on one connection. @throws Fault when an answer is missing */
export const loadCells = (
  { apiUrl }: GatewayProcess,
  key: string,
  points: readonly Point[],
): Promise<Answer[]> =>
  get(
    apiUrl,
    key,
    points.map(({ latitude, longitude }) => `/api/v1/weather/coords/${latitude}/${longitude}`),
  )

/** The name of any cell's bytes in Redis, by that of one that was loaded. @throws Error when those of this one are not found */
export const nameOfBytes = async (redis: Redis, of: Point): Promise<(point: Point) => string> => {
  const keys = await redis.keys(`*${cellName(of)}*`)
  const types = await Promise.all(keys.map(key => redis.type(key)))
  const name = keys.find((_, i) => types[i] === 'string')
  if (name === undefined) throw new Error('the entry of a cell was not found in Redis')
  return point => name.replace(cellName(of), cellName(point))
}
