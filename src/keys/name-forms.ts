// The one form in which names of subscribers and external ids are kept, looked up and searched: Bengali letters are typed in several
// encodings, and blanks and letter case as they come.

import { usualSpelling } from '../catalogue/bengali-spelling.ts'

/** As a store has it. An id stays as it is. */
export const nameForm = (given: string): string => given.trim().normalize('NFC')

/** For searches: what people read as one name is the same text. */
export const foldName = (name: string): string => usualSpelling(name.toLowerCase().replaceAll(/\s+/g, ' '))
