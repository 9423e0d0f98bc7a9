// The number of a store's format. A version of the product refuses a store whose number is greater than the one it knows,
// before it changes anything. The number grows only when a former version would do harm: what it would only ignore is added
// without. docs/operating/install.md says what operators do then; embedded/keys.ts and redis/format.ts know where the number is.

import { InputError } from '../errors.ts'

/** @param place what the store is, as the setting and its value: `store.path is data/abohawa.db` */
export const newerFormat = (place: string, found: number, known: number): InputError =>
  new InputError(
    `${place}, a store of format ${found} of a newer version of abohawa; this version knows formats up to ${known}: start ` +
      'the newer version, or restore the copy from before it (docs/operating/install.md)',
  )
