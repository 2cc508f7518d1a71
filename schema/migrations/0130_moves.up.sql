-- Works with binaries from 100 on.
-- Moves of organizations between cells. A subject of placement is from now on a slot, 'self', or an organization that
-- was moved alone ('organization:acme'), which counts before its slot. state is how far the move has come that this
-- store has a part in, destination its other end, and mover the random number of the command that makes it.
ALTER TABLE placement ADD COLUMN IF NOT EXISTS state Enum8('open' = 0, 'moving' = 1, 'closing' = 2, 'arriving' = 3,
    'switched' = 4, 'leaving' = 5) DEFAULT 'open';
ALTER TABLE placement ADD COLUMN IF NOT EXISTS destination String;
ALTER TABLE placement ADD COLUMN IF NOT EXISTS mover UInt64
