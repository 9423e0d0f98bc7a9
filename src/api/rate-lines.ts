// The limits by the second and minute of a key in the headers of draft-ietf-httpapi-ratelimit-headers-11, behind that of the day,
// whose lines are in admission.ts. Keys without such limits never come here.

import { type KeyRate, type RatePolicy, rateFigures } from '../keys/rates.ts'

const seconds: Record<RatePolicy, number> = { second: 1, minute: 60 }

/** `, "second";q=10;w=1, "minute";q=300;w=60` */
export const ratePolicies = ({ buckets }: KeyRate): string =>
  buckets.map(({ policy, limit }) => `, "${policy}";q=${limit};w=${seconds[policy]}`).join('')

/** `, "second";r=9;t=1, "minute";r=299;t=1`: what may come at once, and in how many seconds all of it may. */
export const ratesLeft = (rate: KeyRate, now: number): string =>
  rateFigures(rate, now)
    .map(
      ({ policy, left, fullInMs }) => `, "${policy}";r=${left};t=${Math.max(1, Math.ceil(fullInMs / 1000))}`,
    )
    .join('')
