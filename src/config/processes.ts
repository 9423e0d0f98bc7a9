// The configuration of each of several processes: the API's port is shared, those for operators and probes are not.

import { InputError } from '../common/errors.ts'
import type { Config } from './schema.ts'

/** The configuration of the process with this number, from 1: it has its own ports for operators and probes. */
export const forProcess = (config: Config, number: number): Config => {
  const { server, ops, health } = config
  const own = (port: number) => (port === 0 ? 0 : port + number - 1)
  return {
    ...config,
    server: { ...server, reusePort: true },
    ops: { ...ops, port: own(ops.port) },
    health: { ...health, port: health.port === null ? null : own(health.port) },
  }
}

/** @throws InputError where so many gateways of this configuration can't run side by side */
export const checkShared = ({ server, ops, health, redis, store }: Config, processes: number): void => {
  if (server.port === 0)
    throw new InputError(`server.port is 0, but ${processes} processes share one port: set server.port`)
  if (redis.url === null && store.path === ':memory:')
    throw new InputError(
      `store.path is :memory:, which ${processes} processes can't share: set store.path to a file, or set redis.url`,
    )
  const first = [ops.port, health.port ?? 0].filter(port => port !== 0)
  const taken = [server.port, ...first.flatMap(port => Array.from({ length: processes }, (_, i) => port + i))]
  if (new Set(taken).size < taken.length || taken.some(port => port > 65_535))
    throw new InputError(
      `${processes} processes take so many ports from ops.port (${ops.port}) and from health.port (${health.port ?? 'none'}) on, ` +
        `which must be up to 65535 and no other's, nor server.port (${server.port}): set them further apart`,
    )
}
