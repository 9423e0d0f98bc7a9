// Weather of grid cells by their coordinates, asked over one connection, and the name under which its bytes lie in Redis:
// found out by loading one cell, so that nothing here hangs on how the gateway puts names together.

import type { Redis } from 'ioredis'
import { converse, type Transcript, whole } from '../http/conversation.ts'
import { bytesWithKey, requestText } from '../http/request-text.ts'
import type { GatewayProcess } from '../system/gateway-process.ts'
import { cellName, type Point } from './fresh-cells.ts'

export const askFor = (
  gateway: Pick<GatewayProcess, 'api'>,
  key: string,
  points: readonly Point[],
): Promise<Transcript> => {
  const texts = points.map(({ latitude, longitude }) =>
    requestText({ target: `/api/v1/weather/coords/${latitude}/${longitude}` }),
  )
  return converse(gateway.api, bytesWithKey(texts.join(''), key), whole, () => false, points.length)
}

/** What the bytes of any cell are called; undefined when those of this one, which was asked for, are not found. */
export const nameOfBytes = async (
  redis: Redis,
  of: Point,
): Promise<((point: Point) => string) | undefined> => {
  const keys = await redis.keys(`*${cellName(of)}*`)
  const types = await Promise.all(keys.map(key => redis.type(key)))
  const name = keys.find((_, i) => types[i] === 'string')
  return name === undefined ? undefined : point => name.replace(cellName(of), cellName(point))
}
