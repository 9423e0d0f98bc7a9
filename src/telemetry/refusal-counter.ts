// Declares the count of refused requests: of a gateway's own listeners, and of those of the first process above workers, which
// refuses some by itself.

import type { Counters } from './counters.ts'
import { opsRefusals } from './label-values.ts'

export const countRefusals = ({ countBy }: Pick<Counters, 'countBy'>) =>
  countBy(
    {
      name: 'abohawa_ops_refused_total',
      help: 'Requests to the ops listener that were refused, by what was wrong with them.',
    },
    ['reason'],
    opsRefusals.map(reason => [reason]),
  )
