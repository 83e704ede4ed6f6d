-- Whether a run's lineage has had another run: a plain step reads it with the row that it writes.
ALTER TABLE head ADD COLUMN has_kin INTEGER NOT NULL DEFAULT 0;
UPDATE head SET has_kin = 1 WHERE run IN (SELECT number FROM run WHERE root IS NOT NULL);
UPDATE head SET has_kin = 1 WHERE run IN (
    SELECT origin.number FROM run AS fork JOIN run AS origin
    ON origin.namespace = fork.namespace AND origin.id = fork.root WHERE fork.root IS NOT NULL
);
