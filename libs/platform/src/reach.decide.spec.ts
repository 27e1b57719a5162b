import { describe, expect, it } from 'vitest';
import { addressReach, checkReach } from './reach.decide.ts';

describe('addressReach', () => {
  it.each([
    ['93.184.216.34', 'public'],
    ['2606:2800:220:1::1', 'public'],
    ['127.0.0.1', 'private'],
    ['10.1.2.3', 'private'],
    ['172.16.0.1', 'private'],
    ['172.32.0.1', 'public'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'private'],
    ['::1', 'private'],
    ['fd12::1', 'private'],
    ['169.254.169.254', 'never'],
    ['0.0.0.0', 'never'],
    ['224.0.0.1', 'never'],
    ['255.255.255.255', 'never'],
    ['100.100.100.200', 'never'],
    ['fe80::1', 'never'],
    ['ff02::1', 'never'],
    ['::', 'never'],
    ['fd00:ec2::254', 'never'],
    ['::ffff:169.254.169.254', 'never'],
    ['::ffff:a9fe:a9fe', 'never'],
    ['::ffff:10.0.0.1', 'private'],
    ['64:ff9b::a9fe:a9fe', 'never'],
    ['64:ff9b::169.254.169.254', 'never'],
    ['64:ff9b::808:808', 'public'],
    ['2002:a9fe:a9fe::1', 'never'],
    ['2002:a00:1::', 'private'],
  ])('%s is %s', (address, reach) => expect(addressReach(address)).toBe(reach));
});

describe('checkReach', () => {
  it('one bad address among good ones is enough', () => {
    expect(() => checkReach('h', ['93.184.216.34', '169.254.169.254'], 'private')).toThrow('h is 169.254.169.254');
    expect(() => checkReach('h', ['93.184.216.34', '10.0.0.1'], 'public')).toThrow('private network');
    expect(() => checkReach('h', ['10.0.0.1'], 'private')).not.toThrow();
    expect(() => checkReach('h', ['169.254.169.254'], 'any')).not.toThrow();
  });
});
