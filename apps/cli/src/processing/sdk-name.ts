/** What modules import. */
export const sdkName = '@perch/processing';
