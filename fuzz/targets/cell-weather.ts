// Loads the weather of grid cells by their coordinates over one connection, and finds the name of a cell's bytes in Redis by
// loading one, so that nothing here depends on how the gateway builds names.

import type { Redis } from 'ioredis'
import { converse, type Transcript, whole } from '../http/conversation.ts'
import { bytesWithKey, requestText } from '../http/request-text.ts'
import type { GatewayProcess } from '../system/gateway-process.ts'
import { cellName, type Point } from './fresh-cells.ts'

export const loadCells = (
  gateway: Pick<GatewayProcess, 'api'>,
  key: string,
  points: readonly Point[],
): Promise<Transcript> => {
  const texts = points.map(({ latitude, longitude }) =>
    requestText({ target: `/api/v1/weather/coords/${latitude}/${longitude}` }),
  )
  return converse(gateway.api, bytesWithKey(texts.join(''), key), whole, () => false, points.length)
}

/** The name of any cell's bytes in Redis; undefined when those of this requested cell are not found. */
export const nameOfBytes = async (
  redis: Redis,
  of: Point,
): Promise<((point: Point) => string) | undefined> => {
  const keys = await redis.keys(`*${cellName(of)}*`)
  const types = await Promise.all(keys.map(key => redis.type(key)))
  const name = keys.find((_, i) => types[i] === 'string')
  return name === undefined ? undefined : point => name.replace(cellName(of), cellName(point))
}
