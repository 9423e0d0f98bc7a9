// The number of a store's format, read before anything else. A version of the product refuses a store with a greater number before it
// changes anything. The number grows only where an older version would damage the data.

import { InputError } from '../common/errors.ts'

/** The format that this version writes. */
export const storeFormat = 1

/** @param place what the store is, as the setting and its value: `store.path is data/abohawa.db` */
export const newerFormat = (place: string, found: number): InputError =>
  new InputError(
    `${place}, a store of format ${found} of a newer version of abohawa; this version knows format ${storeFormat}: start ` +
      'the newer version, or restore the copy from before it (docs/operating/install.md)',
  )
