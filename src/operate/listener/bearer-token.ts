// The token of the ops listener: reads the header `authorization` and compares, in a time that does not depend on the token.
// Keeps its hash alone; where it must be shown is for admission.ts.

import { hash, timingSafeEqual } from 'node:crypto'
import { Refusal } from './refusal.ts'

/** @param values of the header `authorization`, as often as it was sent */
export type TokenFault = (values: readonly string[]) => Refusal | undefined

// Hashed, so that texts of any length are compared in the same time.
const digestOf = (text: string): Buffer => hash('sha256', text, 'buffer')

export const createTokenFault = (token: string): TokenFault => {
  const expected = digestOf(token)
  return values => {
    const [value] = values
    if (value === undefined) return refusal('token_missing', 'is missing')
    if (values.length > 1) return refusal('token_wrong', 'is given more than once')
    const given = /^bearer +(\S+)$/i.exec(value)?.[1]
    if (given === undefined) return refusal('token_wrong', 'is not of the form "Bearer TOKEN"')
    return timingSafeEqual(digestOf(given), expected)
      ? undefined
      : refusal('token_wrong', 'holds another token')
  }
}

const refusal = (reason: 'token_missing' | 'token_wrong', fault: string): Refusal =>
  new Refusal(401, reason, `the authorization header ${fault}; allowed: Bearer with the token in ops.token`, {
    'www-authenticate': `Bearer realm="abohawa ops"${reason === 'token_wrong' ? ', error="invalid_token"' : ''}`,
  })
