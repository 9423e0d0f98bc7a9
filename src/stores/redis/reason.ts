// Why Redis could not be used, in the words of an operator: those of the client library name its own options and timers.

import { messageOf } from '../../common/errors.ts'

/** @param commandTimeoutMs how long a command waits for its reply */
export const redisReason = (thrown: unknown, commandTimeoutMs: number): string => {
  // When no address of a host name can be reached, the error has no message of its own.
  if (thrown instanceof AggregateError) return redisReason(thrown.errors[0], commandTimeoutMs)
  const reason = messageOf(thrown)
  if (reason === 'Command timed out') return `it did not answer within ${commandTimeoutMs} ms`
  const [, silentMs] =
    /^Socket timeout\. Expecting data, but didn't receive any in (\d+)ms\.$/.exec(reason) ?? []
  if (silentMs !== undefined) return `it did not answer within ${silentMs} ms`
  if (reason.startsWith("Stream isn't writeable") || reason === 'Connection is closed.')
    return 'there is no connection to it'
  return reason.startsWith('NOAUTH') ? 'NOAUTH: it asks for a password, and the URL has none' : reason
}
