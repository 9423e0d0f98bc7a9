// A place on the earth as the weather sees it: two numbers. terrain.ts and zones.ts have its height and its time zone.

/** A point in decimal degrees, north and east positive. */
export type Place = { readonly latitude: number; readonly longitude: number }
