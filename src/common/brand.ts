// Strings that must not be swapped for one another carry a name at compile time and nothing at run time.

declare const brand: unique symbol

export type Branded<Name extends string> = string & { readonly [brand]: Name }
